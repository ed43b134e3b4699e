r"""From one look at a family to the coordinates of the next: post-processing of released numbers.

The first look is at the box: moments of (1, x, y). For columns of an elliptical law the slopes of
a generalised linear model are those of the linear one divided by E mu'(eta) (Stein's lemma), which
a normal law of the predictor gives: the start. As much of it is taken as stands out of the noise;
where that hides all, later looks begin at no slopes, which is nearer than noise. These release the
information H and the score s at the fit that they were located at, and theta = H^-1 s, with a ridge
as large as their noise asks for, moves it (a step of Newton's).

Columns are whitened in the information's own weights, as `dpreg.staged.locate` does for a linear
model: directions that the noise hides are not blown up.

Tested in `tests/families/test_looks.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.family import Family
from dpreg.families.whitening import centred, whitened
from dpreg.families.working import Situation, draws

__all__ = ["LEAST_DISPERSION", "Fit", "Offsets", "relocated", "start"]

LEAST_DISPERSION: Final = 0.7
_UNSEEN: Final = 0.1
"""Standard deviations of the noise that a dispersion of no stated law is taken to be at least: caps
that begin too low would cut the very rows that show it."""
_LEAST_MEAN: Final = 1e-4
"""Of a response; and half a standard deviation of its noise, which may put it at an end."""
_NEARLY: Final = 2.0
"""Standard deviations of the noise that complete rows may seem to fall short of all rows by."""


@dataclass(frozen=True, slots=True, eq=False)
class Offsets:
    """Columns of known slope: what they add to the predictor.

    Parameters
    ----------
    slopes : (o,) array
        For stored cells.
    mean, variance : float
        Of what they add, as released.
    """

    slopes: Floats
    mean: float = 0.0
    variance: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fit, and the coordinates that it is looked at in; unrounded.

    Parameters
    ----------
    family : Family
    whitening : (p, p) array
        L.
    center : (p,) array
        m.
    intercept, slopes : float and (p,) array
        b0 and b, for stored columns.
    offsets : Offsets
    mean_weight : float
        wbar.
    dispersion : float
        phi.
    spread : (p,) array
        Standard deviation of each coordinate of u: below 1 where noise hides it.
    misfit : float
        Mean square of what the fit is expected to lack, in units of the residual's.
    signal : float
        Expected |theta|^2.
    rows : float
        Released number of complete rows.
    mean : float
        Released mean of the response.
    """

    family: Family
    whitening: Floats
    center: Floats
    intercept: float
    slopes: Floats
    offsets: Offsets
    mean_weight: float
    dispersion: float
    spread: Floats
    misfit: float
    signal: float
    rows: float
    mean: float

    @property
    def middle(self) -> float:
        """The predictor at the centre."""
        return self.intercept + float(self.center @ self.slopes) + self.offsets.mean

    @property
    def along(self) -> Floats:
        """Slopes of the predictor on u, (p,)."""
        found = np.linalg.lstsq(self.whitening.T, self.slopes, rcond=None)[0]
        return np.asarray(found, dtype=np.float64)

    @property
    def predicted_variance(self) -> float:
        """Variance of the predictor under the working law."""
        return float(((self.along * self.spread) ** 2).sum())

    @property
    def steepest(self) -> float:
        """The largest standard deviation of the predictor that the fit may have."""
        return _steepest(self.family, self.middle)

    def situation(self, sample: Floats | None = None) -> Situation:
        """Return what the next look is planned with; other draws may stand for the working law.

        Columns are centred in the information's weights. Those of counts grow with the mean, so
        that most rows lie below the centre: by the variance of the predictor, were columns normal.
        They are placed where the mean is the released one.
        """
        sample = draws(len(self.slopes)) if sample is None else sample
        u, along = sample[:, :-1] * self.spread, self.along
        eta = self.middle + u @ along + math.sqrt(self.offsets.variance) * sample[:, -1]
        variance = self.predicted_variance
        if self.family.dispersed and variance > 0:
            mean = float(self.family.moments(eta)[0].mean())
            below = math.log(mean / max(self.mean_weight, self.mean))
            below = min(max(below, 0.0), variance)
            u, eta = u - below / variance * self.spread**2 * along, eta - below
        return Situation(
            family=self.family,
            eta=eta,
            rows=np.column_stack([np.ones(len(u)), u]),
            mean_weight=self.mean_weight,
            dispersion=self.dispersion,
            count=self.rows,
            size=len(self.slopes) + 1,
            misfit=self.misfit,
            signal=self.signal,
        )

    def held(self) -> Fit:
        """Return the fit with its predictor within public limits.

        Its centre between the family's limits, and its standard deviation at most the family's:
        noise may not throw it farther.
        """
        low, high = self.family.limits
        middle = min(max(self.middle, low), high)
        most = _steepest(self.family, middle)
        variance = self.predicted_variance
        slopes = self.slopes * min(1.0, most / math.sqrt(max(variance, 1e-300)))
        intercept = middle - float(self.center @ slopes) - self.offsets.mean
        return replace(self, slopes=slopes, intercept=intercept)


def _steepest(family: Family, middle: float) -> float:
    """Return the largest standard deviation of the predictor that a fit may have."""
    if not family.dispersed:
        return family.steep
    return min(max((family.limits[1] - middle) / 1.5, 0.4), family.steep)


def start(
    family: Family,
    cells: Floats,
    noise_sd: Floats,
    known: Floats,
    response: tuple[float, float],
    rows: int | None,
    mean: float | None = None,
) -> Fit:
    """Return the fit that a look at the box gives.

    Parameters
    ----------
    family : Family
    cells, noise_sd : (D, D) arrays
        Released moments of (1, x, o, y), the offsets' columns o behind the others, and the standard
        deviations of their noise.
    known : (o,) array
        Slopes of the predictor on the stored offsets.
    response : (float, float)
        The response is the first plus the second times its stored cell.
    rows : int or None
        The number of rows where it is public.
    mean : float, optional
        Of the response, where its cells hold only what a first guess left of it.
    """
    count = float(cells[0, 0])
    if rows is not None and count + _NEARLY * float(noise_sd[0, 0]) >= rows:
        count = float(rows)
    count = max(count, len(cells) + 1.0)
    boxed = cells.copy()
    boxed[0] = np.clip(boxed[0], -count, count)
    means, moments, variances = centred(boxed, noise_sd, count)
    p = len(means) - 1 - len(known)
    told = response[0] + response[1] * float(means[-1]) if mean is None else mean
    noise = response[1] * float(noise_sd[0, -1]) / count
    least = min(max(_LEAST_MEAN, noise / 2), family.cap / 2)
    mean = min(max(told, least), family.cap - least)
    most = math.inf  # of counts: what a predictor of variance 1 explains
    if family.dispersed:
        most = math.expm1(1.0) * (mean / response[1]) ** 2
    found = whitened(moments, variances, None, 1 / count, most)
    keep = [*range(p), len(means) - 1]
    square = np.ix_(keep, keep)
    own = whitened(moments[square], variances[square], None, 1 / count, most)
    first = found.seen * found.slopes
    slope = mean if family.dispersed else mean * (1 - mean / family.cap)
    explained = float(first @ moments[:-1, :-1] @ first) * response[1] ** 2
    lost = max(explained, 0.0) / family.cap
    attenuated = slope if family.dispersed else max(slope - lost, 0.35 * slope)
    unit = response[1] / attenuated  # E mu'(eta), by Stein's lemma
    # Beyond the family's limits the mean stays where it is; noise may put no variance there.
    within = ((family.limits[1] - family.limits[0]) / 2) ** 2
    offsets = Offsets(
        known,
        float(known @ np.clip(means[p:-1], -1.0, 1.0)),
        min(max(float(known @ moments[p:-1, p:-1] @ known), 0.0), within),
    )
    residual = float(moments[-1, -1]) * response[1] ** 2 - max(explained, 0.0)
    dispersion = 1.0
    if family.dispersed:
        beyond = residual / mean - 1  # the noise alone may give more than counts have
        noise = math.sqrt(float(variances[-1, -1])) * response[1] ** 2 / mean
        beyond *= max(1 - (noise / max(abs(beyond), 1e-300)) ** 2, 0.0)
        if family.quasi:
            beyond = max(beyond, _UNSEEN * noise)
        dispersion = min(max(1 + beyond, LEAST_DISPERSION), family.cap)
    fit = Fit(
        family=family,
        whitening=own.whitening,
        center=np.clip(means[:p], -1.0, 1.0),
        intercept=0.0,
        slopes=first[:p] * unit,
        offsets=offsets,
        mean_weight=1.0,
        dispersion=dispersion,
        spread=own.spread,
        misfit=0.0,
        signal=0.0,
        rows=count,
        mean=mean,
    )
    steep = _steepest(family, family.predictor(mean)) / 2
    variance = fit.predicted_variance
    slopes = fit.slopes * min(1.0, steep / math.sqrt(max(variance, 1e-300)))
    variance = min(variance, steep**2) + offsets.variance
    middle = family.centre(mean, variance)
    intercept = middle - float(fit.center @ slopes) - offsets.mean
    fit = replace(fit, slopes=slopes, intercept=intercept).held()
    weight = float(family.moments(fit.situation().eta)[1].mean())
    scale = unit**2 * weight
    return replace(
        fit,
        mean_weight=weight,
        misfit=found.missing * scale / dispersion,
        signal=own.signal * scale + (p + 1) * dispersion / count,
    )


def relocated(
    fit: Fit, cells: Floats, noise_sd: Floats, middle: float, efficiency: float, slope: float
) -> tuple[Fit, float]:
    """Return the fit moved by what a look released, and by how much it moved.

    Parameters
    ----------
    fit : Fit
        Whose coordinates the look was in.
    cells, noise_sd : (d + 1, d + 1) arrays
        H, and s in the last column; the last entry of the diagonal is not read.
    middle : float
        Q over the trace of H: what a score varies by, beside its information.
    efficiency, slope : float
        Of the look's clips: that falls short of the dispersion by the first, and the score's mean
        change of the information by the second.

    Returns
    -------
    Fit
    float
        Mean square of the change of the predictor, less what noise alone would change it by.
    """
    rows, family = fit.rows, fit.family
    count = max(min(float(cells[0, 0]), 3 * rows), 0.05 * rows, float(noise_sd[0, 0]))
    cells, noise_sd = cells.copy(), noise_sd.copy()
    cells[0, 0] = count
    for block in (cells, noise_sd):
        block[-1] /= slope
        block[:, -1] /= slope
    means, moments, variances = centred(cells, noise_sd, count)
    means = np.clip(means, -1e3, 1e3)
    p = len(means) - 1
    found = whitened(moments, variances, fit.signal, middle / rows)
    constant = float(means[p] - means[:p] @ found.slopes)
    moved = float(found.slopes @ moments[:p, :p] @ found.slopes) + float(means[p]) ** 2
    changed = max(moved * count / rows - found.missing, 0.0) / fit.mean_weight
    unit = 1 / math.sqrt(fit.mean_weight)
    slopes = fit.slopes + unit * (fit.whitening.T @ found.slopes)
    constant -= float(fit.center @ (fit.whitening.T @ found.slopes))
    back = np.linalg.lstsq(fit.whitening, means[:p], rcond=None)[0]
    dispersion = fit.dispersion
    if family.dispersed:
        wanted = middle / max(efficiency, 1e-3)
        wanted = min(max(wanted, 0.3 * dispersion), 3 * dispersion)
        dispersion = min(max(wanted, LEAST_DISPERSION), family.cap)
    weight = fit.mean_weight * min(max(count / rows, 1 / 8), 3.0)
    new = replace(
        fit,
        whitening=found.whitening @ fit.whitening,
        center=np.clip(fit.center + back, -1.0, 1.0),
        intercept=fit.intercept + unit * constant,
        slopes=slopes,
        spread=found.spread,
        mean_weight=weight,
        dispersion=dispersion,
        misfit=found.missing / dispersion,
        signal=found.signal + (p + 1) * dispersion / rows,
    ).held()
    return new, changed
