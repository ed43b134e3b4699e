"""What the released numbers themselves say of a result: post-processing, free of charge.

Each remark follows from released or public numbers by a rule that stands here. It says what is
seen, what may be the cause, and what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.estimation.shares import FEW
from dpreg.privacy.budget import decimal_string
from dpreg.schema import Boolean, Categorical, Numeric, Schema

if TYPE_CHECKING:
    from dpreg.results.classic import ClassicResults
    from dpreg.results.regression import RegressionResults
    from dpreg.results.selection import SelectionResults

__all__ = ["ends_of", "of_classic", "of_glm", "of_regression", "of_selection"]

_FEW_COMPLETE: Final = 0.5
"""Below this share of complete rows, gaps are worth a question."""
_HUGE_Z: Final = 1000.0
_AT_BOUND: Final = 0.01
"""An estimate within this share of the declared range of an end of it lies at the bound."""
_LARGE_RESIDUAL: Final = 0.45
"""Residual sd as a share of the response's range; at half the range no column explains a thing."""
_LARGE_SHARE: Final = 0.05
"""A term that must explain more than this of all that bounds allow is hardly ever chosen."""
_RADIUS_USED: Final = 0.9
"""Share of the radius from which on it may have bound the selection."""


def of_regression(fit: RegressionResults, rows: int | None = None) -> list[str]:
    """Return the remarks on fitted coefficients.

    Parameters
    ----------
    fit : RegressionResults
    rows : int, optional
        The public number of rows of the table, where the fit itself does not hold it.
    """
    return [
        *_complete(fit, fit.nobs if rows is None else rows),
        *_residual(fit),
        *_swamped(fit),
        *_huge_z(fit),
        *_rare(fit),
    ]


def of_glm(fit: RegressionResults, rows: int | None) -> list[str]:
    """Return the remarks on coefficients of a family; `rows` as for `of_regression`."""
    return _complete(fit, rows)


def of_selection(result: SelectionResults) -> list[str]:
    """Return the remarks on a selection."""
    return [*_too_few_rows(result), *_null(result), *_radius(result)]


def of_classic(result: ClassicResults) -> list[str]:
    """Return the remarks on means and quantiles."""
    return [*_few(result), *_mean_at_bound(result), *_few_off_an_end(result)]


def _complete(fit: RegressionResults, public: int | None) -> list[str]:
    if fit.complete_rows is None or public is None:
        return []
    rows = public / 2 if fit.fit == "split" else float(public)
    if fit.complete_rows >= _FEW_COMPLETE * rows:
        return []
    return [_gaps(fit.complete_rows, rows, Schema(fit.schema))]


def _gaps(complete: float, rows: float, schema: Schema) -> str:
    levels = any(isinstance(spec, Categorical | Boolean) for spec in schema.values())
    ask = (
        "do the schema's levels match the data, letter by letter? Does each column that is "
        "declared as a number hold numbers?"
        if levels
        else "does each column that is declared as a number hold numbers, and are cells really "
        "missing so often?"
    )
    return (
        f"About {max(complete, 0):,.0f} complete rows of {rows:,.0f}: {ask} A row with a missing "
        "or undeclared value counts for nothing."
    )


def _residual(fit: RegressionResults) -> list[str]:
    response = Schema(fit.schema).get(fit.endog_names)
    variance = fit.error_variance
    if variance is None or not isinstance(response, Numeric):
        return []
    sd, width = float(np.sqrt(max(variance, 0.0))), response.hi - response.lo
    if sd < _LARGE_RESIDUAL * width:
        return []
    return [
        f"The residual sd, {sd:.4g}, is about half the declared range of {fit.endog_names} "
        f"({response.lo:g} to {response.hi:g}) or more, which the data cannot have: the noise "
        "hides the response. More rows, a larger eps or fewer columns would help."
    ]


def _swamped(fit: RegressionResults) -> list[str]:
    response = Schema(fit.schema).get(fit.endog_names)
    if (
        fit.column_widths is None
        or fit.conditional
        or fit.among
        or not isinstance(response, Numeric)
    ):
        return []
    ends = fit.conf_int().to_numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        reach = 2 * (ends[:, 1] - ends[:, 0]) * fit.column_widths  # over the declared range
    names = [
        name
        for name, moved in zip(fit.exog_names, reach, strict=True)
        if name != "Intercept" and moved > 2 * (response.hi - response.lo)
    ]
    if not names:
        return []
    return [
        f"Nothing is known of {_listed(names)}: the intervals allow effects as large as the whole "
        f"declared range of {fit.endog_names}, in either direction. Tighter public bounds of these "
        "columns, more rows or a larger eps would help."
    ]


def _huge_z(fit: RegressionResults) -> list[str]:
    z = np.abs(fit.tvalues.to_numpy())
    names = [
        name
        for name, value in zip(fit.exog_names, z, strict=True)
        if value > _HUGE_Z and name != "Intercept"
    ]
    if not names:
        return []
    return [
        f"z is in the thousands for {_listed(names)}: is it a copy of {fit.endog_names}, or a "
        "part of how that is computed?"
    ]


def _rare(fit: RegressionResults) -> list[str]:
    rare = [name for name, why in fit.weak.items() if why == "rare level"]
    if not rare or not fit.ridged:
        return []
    return [
        f"The fit was ridged because the noise hides how these levels differ: {_listed(rare)}. "
        "They occur in too few rows. Merge them with another level in the schema and the data, or "
        "leave the factor out, and the other coefficients become more accurate."
    ]


def _too_few_rows(result: SelectionResults) -> list[str]:
    """Say where a term has to explain much of all that the response's bounds allow.

    A model is charged psi for a term and phi for a column, in squared units of the scaled
    response, whose squares add up to at most clip^2 a row. All of these are public.
    """
    if result.method != "pcls" or result.nobs is None or result.psi is None:
        return []
    rows = result.nobs / 2 if _split(result) else float(result.nobs)
    charged = float(result.psi) + float(result.phi or 0)
    share = charged / (rows * float(result.clip) ** 2)
    if share < _LARGE_SHARE:
        return []
    wanted = result.nobs * share / _LARGE_SHARE
    told = f"{100 * share:.0f}%" if share < 1 else "all"
    return [
        f"{result.nobs:,} rows are few for eps = {decimal_string(result.eps)}: a term pays only if "
        f"it explains {told} of the largest sum of squares that the response's bounds allow. With "
        f"about {_rounded(wanted)} rows, or eps raised in proportion, {100 * _LARGE_SHARE:.0f}% "
        "would be enough."
    ]


def _split(result: SelectionResults) -> bool:
    return result.regression is not None and result.regression.fit == "split"


def _rounded(number: float) -> str:
    """Write two significant digits of a number of rows."""
    return f"{int(float(f'{number:.2g}')):,}"


def _null(result: SelectionResults) -> list[str]:
    chosen = [term for term in result.selected if term in result.candidates]
    if chosen or result.alternatives or not result.candidates:
        return []
    rows = "the number of rows" if result.nobs is None else f"{result.nobs:,} rows"
    return [
        f"No candidate was selected. With {rows} and eps = {decimal_string(result.eps)} this says "
        "that no effect stood out from the noise; it does not say that there is none. "
        "dpreg.plan() says which effects can be seen, before a budget is spent."
    ]


def _radius(result: SelectionResults) -> list[str]:
    if result.radius is None:
        return []
    radius = float(result.radius)
    used = _length(result)
    if used is not None and used < _RADIUS_USED * radius:
        return []
    if used is not None:
        return [
            f"The scaled coefficients add up to {used:.3g}, and the selection compared models "
            f"within radius = {radius:.3g}: the radius may have bound, and terms that matter may "
            f'be missing. Give a larger radius=, or radius="private".'
        ]
    if result.radius_source == "default" and len(result.candidates) > 1:
        return [
            f"radius = {radius:.3g} is the default: models were compared with scaled coefficients "
            "that add up to at most that. If the true ones may add up to more, terms can be missed "
            'whatever eps is: give a larger radius=, or radius="private".'
        ]
    return []


def _length(result: SelectionResults) -> float | None:
    """Return sum |b_j| w_j / half the response's range, as the radius is measured."""
    fit = result.regression
    response = Schema(result.schema).get(result.response)
    if fit is None or fit.column_widths is None or not isinstance(response, Numeric):
        return None
    slopes = np.array([name != "Intercept" for name in fit.exog_names], dtype=bool)
    lengths = np.abs(fit.coefficients * fit.column_widths)[slopes]
    return float(lengths.sum() / ((response.hi - response.lo) / 2))


def _few(result: ClassicResults) -> list[str]:
    if result.counts is None or result.nobs is None or result.blocks is not None:
        return []
    complete = float(result.counts.sum())
    if complete >= _FEW_COMPLETE * result.nobs:
        return []
    return [_gaps(complete, float(result.nobs), Schema({"g": ["a", "b"]} if result.by else {}))]


def _columns(result: ClassicResults) -> list[str | None]:
    """Return which column's bounds are those of each estimate."""
    named, found = list(result.bounds), []
    for label in np.tile(result.names, max(len(result.groups), 1)):
        name = next((one for one in named if label == one or label.startswith(f"{one}: ")), None)
        found.append(named[0] if name is None and len(named) == 1 else name)
    return found


def ends_of(result: ClassicResults) -> NDArray[np.float64]:
    """Return the public bounds of each estimate, (m, 2); infinite where there are none."""
    wide = np.array([-np.inf, np.inf])
    return np.array([wide if name is None else result.bounds[name] for name in _columns(result)])


def _few_off_an_end(result: ClassicResults) -> list[str]:
    """Say which means a few rows may decide, so that their intervals are rough."""
    if result.statistic != "mean" or result.counts is None:
        return []
    rows = np.repeat(result.counts, len(result.names))
    low, high = ends_of(result).T
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.minimum(result.estimates - low, high - result.estimates) / (high - low) * rows
    if not (off < FEW).any():
        return []
    return [
        "A mean lies so near an end of its bounds that a few rows may account for the distance: "
        "the normal law is then rough, and the interval covers too seldom. Intervals of "
        "dp_histogram's shares hold better for rare values."
    ]


def _mean_at_bound(result: ClassicResults) -> list[str]:
    if result.statistic not in ("mean", "quantile") or not result.bounds:
        return []
    found = []
    for name, value in zip(_columns(result), result.estimates, strict=True):
        if name is None:
            continue
        lo, hi = (float(end) for end in result.bounds[name])
        if min(value - lo, hi - value) < _AT_BOUND * (hi - lo):
            found.append(f"{name} ({lo:g} to {hi:g})")
    if not found:
        return []
    return [
        f"An estimate lies at an end of the declared range of {_listed(list(dict.fromkeys(found)))}"
        ": do the values lie within these bounds, and in these units? Values outside are clipped."
    ]


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:6])
    return f"{shown} and {len(names) - 6} more" if len(names) > 6 else shown
