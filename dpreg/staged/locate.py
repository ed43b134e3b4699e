r"""From one noisy look to the coordinates of the next: post-processing of released numbers.

Centre the released moments at their means: S with noise variances V, both per row. The noise in
S_xx has norm about nu = 2 max_i sqrt(sum_j V_ij) (Bandeira and van Handel 2016). With eigenvalues
lam of S_xx and its eigenvectors Q,

    L = Lambda^(-1/2) Q',    Lambda = max(lam, 0) + nu/2:

directions that the noise hides are not blown up. The coefficients b are a posterior mean: noise of
variance v_b + v_A |b|^2 an equation, and columns that explain all of the response at most. The
residual's second moment omega^2 counts what the noise adds to it (bt'V bt of (b, -1), and what the
error of b leaves unexplained), so that the cut tau = 2 omega seldom binds by an accident of noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.staged.released import Coordinates, NoisyLook

__all__ = ["CUT", "Centred", "Located", "centred", "centred_at", "locate", "noise_unit"]

_FLOOR: Final = 0.5
"""Share of nu added to eigenvalues: below it directions are noise, and whitening stops there."""
_RESOLVED: Final = 2.0
"""Where the least eigenvalue is so many nu, b needs no ridge."""
_LEAST: Final = 0.1
"""Least eigenvalue that the ridge takes for true, as a share of nu."""
_TWO_VALUED: Final = 0.7
"""Share of the largest variance at a column's mean from where on it counts as having two values:
only a column of two values has all of it."""
_REACH: Final = 2.0
"""Largest squared length of u along a row's rarer value, in units of d: rows of a rare level are
then hardly shortened, and what is not whitened costs little."""
CUT: Final = 1.7
"""tau in units of omega. Noise grows with tau, and the law knows what cutting costs: from 1.4 to 2
errors differ by a few percent."""


@dataclass(frozen=True, slots=True, eq=False)
class Centred:
    """Centred released moments, per row.

    Parameters
    ----------
    count : float
        Sum of squared weights.
    means : (p + 1,) array
        Of the columns and the response.
    moments : (p + 1, p + 1) array
        S.
    variances : (p + 1, p + 1) array
        V, of the noise in S.
    """

    count: float
    means: Floats
    moments: Floats
    variances: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """Where to look next.

    Parameters
    ----------
    coordinates : Coordinates
        Unrounded; a look rounds them to its grids.
    count : float
        Released number of complete rows.
    residual : float
        omega^2: second moment of the residual in box units of the response, inflated for noise.
    expected_square : float
        B: the expected |theta|^2 in the new coordinates.
    eigenvalues : (p,) array
        Of S_xx in the coordinates of the look that was located from.
    noise_norm : float
        nu of S_xx, in the same units.
    lengths : (p,) array
        How far a row can lie from a column's mean, in box units, where a column has two values; 0
        for other columns.
    spread : (p, p) array
        Expected covariance of u.
    """

    coordinates: Coordinates
    count: float
    residual: float
    expected_square: float
    eigenvalues: Floats
    noise_norm: float
    lengths: Floats
    spread: Floats

    @property
    def resolved(self) -> int:
        """Directions whose eigenvalue stands above nu."""
        return int((self.eigenvalues > self.noise_norm).sum())


def centred(look: NoisyLook, most: float | None = None) -> Centred:
    """Centre a look's cells at their released means."""
    count = look.count(most)
    means = look.cells[0, 1:] / count
    if look.coordinates.boxed:
        means = np.clip(means, -1.0, 1.0)
    return Centred(count, means, *centred_at(means, look.cells, look.noise_sd, count))


def centred_at(
    means: Floats, cells: Floats, noise_sd: Floats, count: float
) -> tuple[Floats, Floats]:
    """Return centred moments per row, and the variances of the noise in these.

    The noise of a centred cell is E_ij - m_i E_0j - m_j E_0i + m_i m_j E_00 to first order.
    """
    moments = cells[1:, 1:] / count - np.outer(means, means)
    squares, noise = means**2, noise_sd**2
    variances = (
        noise[1:, 1:]
        + np.outer(squares, noise[0, 1:])
        + np.outer(noise[0, 1:], squares)
        + np.outer(squares, squares) * noise[0, 0]
    ) / count**2
    return moments, variances


def locate(look: NoisyLook, before: Located | None = None, levels: Sequence[int] = ()) -> Located:
    """Return the coordinates that the next look should use.

    Parameters
    ----------
    look : NoisyLook
    before : Located, optional
        Where the look was located from; it holds the number of complete rows, and which columns
        have two values, from the first look.
    levels : sequence of int
        For a first look: which of the p columns are 0/1 columns of factors, as the formula tells.
    """
    most = None if before is None else before.count
    found = centred(look, most)
    size = len(found.means) - 1
    moments, variances = found.moments, found.variances
    total = max(float(moments[size, size]), 2 * math.sqrt(variances[size, size]), 1e-12)
    if look.coordinates.boxed:
        total = min(total, 1.0)
    norm = 2 * math.sqrt(float(variances[:size, :size].sum(axis=1).max(initial=0.0)))
    norm = max(norm, 1e-12)
    values, vectors = np.linalg.eigh(moments[:size, :size])
    shrunk = _shrunk(values, norm, total, variances)
    slopes = vectors @ (shrunk * (vectors.T @ moments[:size, size]))
    squares = np.append(slopes, -1.0) ** 2
    noise = variances @ squares
    turned = shrunk**2 * (vectors.T**2 @ noise[:size])
    positive = np.maximum(values, 0.0)
    floored = positive + _FLOOR * norm
    residual = _residual(found, slopes, noise, shrunk, turned, positive, vectors, total)
    scale = look.coordinates.width**2
    whitening = (vectors / np.sqrt(floored)).T
    lengths = np.zeros(size) if before is None else before.lengths
    if look.coordinates.boxed:
        lengths = _lengths(found, levels)
    turn = _shortening(whitening @ look.coordinates.whitening, lengths)
    whitening = turn @ whitening
    back = np.linalg.inv(turn)
    inner = Coordinates(
        whitening=whitening,
        offset=-whitening @ found.means[:size],
        intercept=float(found.means[size] - found.means[:size] @ slopes),
        slopes=slopes,
        width=CUT * math.sqrt(residual),
        squared_radius=1.0 + float((turn**2 @ (positive / floored)).sum()),
    )
    error = float((back**2 * (floored * turned)[:, None]).sum())
    return Located(
        coordinates=_composed(look.coordinates, inner),
        count=found.count if most is None else most,
        residual=residual * scale,
        expected_square=error / inner.width**2 + 1.0 / found.count,
        lengths=lengths,
        spread=(turn * (positive / floored)) @ turn.T,
        eigenvalues=values,
        noise_norm=norm,
    )


def _lengths(found: Centred, levels: Sequence[int]) -> Floats:
    """Return for each column how far from its mean a row can lie, if it has two values; else 0.

    A column of the box with the mean m has at most the variance 1 - m^2, and only one of the values
    -1 and 1 has so much. Noise is given the benefit of the doubt: what it hides is better left
    unwhitened.
    """
    means = found.means[:-1]
    spread = np.diag(found.moments + np.sqrt(found.variances))[:-1]
    signed = spread >= _TWO_VALUED * (1 - means**2)
    lengths = np.where(signed, 1 + np.abs(means), 0.0)
    lengths[list(levels)] = np.maximum(1 - means, means)[list(levels)]
    return lengths


def _shortening(whitening: Floats, lengths: Floats) -> Floats:
    """Return a map of u that draws rows of a rare level in, (p, p).

    In whitened coordinates they lie far out: they would be shortened, and lose their residuals by
    the same factor. A column of two values needs no whitening to be bounded. Along L e_j the
    coordinates are scaled until a row of its rarer value has at most the squared length d times
    `_REACH`.
    """
    size = len(lengths)
    turn, reach = np.eye(size), _REACH * (size + 1.0)
    for j in np.flatnonzero(lengths):
        along = turn @ whitening[:, j]
        square = float(along @ along)
        if square * lengths[j] ** 2 > reach:
            shorter = math.sqrt(reach / square) / lengths[j]
            turn -= (1 - shorter) / square * np.outer(along, along @ turn)
    return turn


def _shrunk(values: Floats, norm: float, total: float, variances: Floats) -> Floats:
    """Return the posterior mean's factor w/(w^2 + kappa) for each direction."""
    size = len(values)
    if not size:
        return np.zeros(0)
    least = np.maximum(values, _LEAST * norm)
    if values[0] >= _RESOLVED * norm:
        return np.asarray(1.0 / least)
    squared = total * size / max(float(least.sum()), 1e-12)
    kappa = size * (variances[:size, size].mean() + variances[:size, :size].mean() * squared)
    return np.asarray(least / (least**2 + kappa / squared))


def _residual(
    found: Centred,
    slopes: Floats,
    noise: Floats,
    shrunk: Floats,
    turned: Floats,
    positive: Floats,
    vectors: Floats,
    total: float,
) -> float:
    """Return omega^2 in the look's own units: never below its own noise, never above var(y)."""
    size = len(slopes)
    extended = np.append(slopes, -1.0)
    spread = math.sqrt(max(float(extended**2 @ noise), 0.0))
    explained = float(extended @ found.moments @ extended)
    explained += float((shrunk * (vectors.T**2 @ noise[:size])).sum())
    wanted = max(explained, 0.0) + float((positive * turned).sum()) + spread
    most = total + math.sqrt(found.variances[size, size])
    return min(max(wanted, spread, 1e-12), most)


def _composed(outer: Coordinates, inner: Coordinates) -> Coordinates:
    """Return `inner`, found from rows in the coordinates `outer`, as a map of the box."""
    slopes = outer.whitening.T @ inner.slopes
    shift = inner.intercept + float(outer.offset @ inner.slopes)
    return Coordinates(
        whitening=inner.whitening @ outer.whitening,
        offset=inner.whitening @ outer.offset + inner.offset,
        intercept=outer.intercept + outer.width * shift,
        slopes=outer.slopes + outer.width * slopes,
        width=outer.width * inner.width,
        squared_radius=inner.squared_radius,
    )


def noise_unit(strength: float, neighbors: str, degrees: int | None) -> float:
    """Return the noise's standard deviation in a cell of sum c (1, u) e, for R = 1.

    With the public weights that balance both blocks (gamma = R^2, alpha = 1/2) it is R times this.

    Parameters
    ----------
    strength : float
        mu (Gaussian) or eps (matrix-Laplace) of the look, divided by the rows of one person.
    neighbors : {"replace-one", "add-remove"}
    degrees : int or None
        As in `NoisyLook`.
    """
    replaced = neighbors == "replace-one"
    if degrees is None:
        return (2.0 if replaced else math.sqrt(2.0)) / strength
    return math.sqrt(2.0 * degrees) * (2.0 if replaced else 1.0) / strength
