"""The facts of a whole page, label and value: how each is read, and where it stands.

Tested in `tests/results/test_page.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from dpreg.privacy.budget import decimal_string
from dpreg.results.report import Facts
from dpreg.results.views import fixed, has_errors

__all__ = ["facts"]

_PRIVACY: Final = "Neighbors|Contributions|eps|delta|n|Passes"
_LAYOUTS: Final[Mapping[str, tuple[str, str]]] = {
    "regression": (
        "Dep. Variable|Fit|Noise|Rows|Complete, noisy|Scaling|Df Model|R-squared|Residual sd",
        f"{_PRIVACY}|Clip|Bounds|Intervals",
    ),
    "chosen regression": (
        "Fit|Noise|Rows|Complete, noisy",
        "R-squared|Residual sd|Intervals",
    ),
    "glm": (
        "Dep. Variable|Success|Family|Link|Noise|Df Model|Scale|Complete, noisy|Converged",
        f"{_PRIVACY}|Offset|Trials|Intervals",
    ),
    "chosen glm": ("Family|Link|Fit|Rows", "Complete, noisy|Scale|Converged|Intervals"),
    "selection": (
        "Method|Mechanism|Engine|Certified|Models|Terms|Units|Hierarchy|max_terms|Draws|Bounds",
        f"{_PRIVACY}|Radius|Clip|Penalty|phi (per column)|psi (per term)|Sigma2",
    ),
    "classic": ("Statistic|Noise|Groups|Blocks|Complete, noisy", _PRIVACY),
    "histogram": ("Column|Bins|Noise|Groups", _PRIVACY),
}
"""Which facts stand on the left and on the right of a whole page; those that are not known go."""


def facts(layout: str, result: Any) -> Facts:
    """Lay out the facts of a result, or of the coefficients within one."""
    left, right = (
        tuple(
            (name, told) for name in side.split("|") if (told := _FACTS[name](result)) is not None
        )
        for side in _LAYOUTS[layout]
    )
    return Facts(left, right)


def _sd(fit: Any) -> str | None:
    variance = fit.error_variance
    return None if variance is None else fixed(math.sqrt(max(variance, 0)), 4)


def _complete(result: Any) -> str | None:
    """Return the released number of complete rows; of old families that hide it 0, as was said."""
    if result.kind == "classic":
        alone = result.counts is not None and not result.groups
        return f"{result.counts[0]:,.0f}" if alone else None
    rows = result.complete_rows
    if rows is None and (result.kind == "regression" or result.method == "adaptive"):
        return None
    return f"{rows or 0:,.0f}"


def _intervals(fit: Any) -> str:
    """Say in a word what kind of intervals there are."""
    if not has_errors(fit):
        return "none"
    if fit.among:
        return f"for the choice among {fit.among}"
    if fit.conditional:
        return "given the choice"
    if fit.method == "adaptive":
        return "robust" if fit.claim.person is None else "robust, clustered"
    return "yes" if fit.kind == "glm" else fit.interval_method + ", ridged" * fit.ridged


def _sources(bounds: Mapping[str, str]) -> str:
    counts = Counter(bounds.values())
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{counts[source]} {source}" for source in sorted(counts, reverse=True)) or "-"


def _short(number: Fraction | float | None) -> str | None:
    """Return few digits: an exact decimal where it is short, else six significant digits."""
    if isinstance(number, Fraction):
        text = decimal_string(number)
        if len(text) <= 10 and "/" not in text:
            return text
    return None if number is None else f"{float(number):.6g}"


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**12 else f"{Decimal(number):.3e}"


# What was spent is shown of eps and delta: pure noise costs no delta, whatever the call allows.
_FACTS: Final[Mapping[str, Callable[[Any], str | None]]] = {
    "Neighbors": lambda r: r.claim.neighbors,
    "Contributions": lambda r: "all" if r.claim.whole else str(r.claim.contributions),
    "eps": lambda r: r.claim.spent.as_decimal()[0],
    "delta": lambda r: r.claim.spent.as_decimal()[1],
    "n": lambda r: "private" if r.nobs is None else f"{r.nobs:,}",
    "Passes": lambda r: str(r.passes),
    "Dep. Variable": lambda r: r.endog_names,
    "Fit": lambda r: r.method if r.kind == "regression" else r.fit,
    "Noise": lambda r: r.noise,
    "Rows": lambda r: "held out" if r.fit == "split" else "all",
    "Complete, noisy": _complete,
    "Scaling": lambda r: r.scaling,
    "Df Model": lambda r: f"{r.df_model:.0f}",
    "R-squared": lambda r: None if r.explained is None else fixed(r.explained),
    "Residual sd": _sd,
    "Clip": lambda r: _short(r.clip),
    "Bounds": lambda r: _sources(r.bounds),
    "Intervals": _intervals,
    "Success": lambda r: r.success,
    "Family": lambda r: r.family,
    "Link": lambda r: r.link,
    "Scale": lambda r: (
        fixed(r.error_variance) if math.isfinite(r.error_variance or math.nan) else "not released"
    ),
    "Converged": lambda r: "yes" if r.converged else "no",
    "Offset": lambda r: r.offset,
    "Trials": lambda r: r.trials,
    "Method": lambda r: {"pcls": "PCLS", "pcpl": "PCPL"}.get(r.method, r.method),
    "Mechanism": lambda r: r.mechanism,
    "Engine": lambda r: r.engine,
    "Certified": lambda r: {None: None, True: "yes", False: "no"}[r.certified],
    "Models": lambda r: _count(r.n_models),
    "Terms": lambda r: f"{len(r.kept)} kept, {len(r.candidates)} candidates",
    "Units": lambda r: r.units,
    "Hierarchy": lambda r: r.hierarchy,
    "max_terms": lambda r: "none" if r.max_terms is None else str(r.max_terms),
    "Draws": lambda r: str(r.draws),
    "Radius": lambda r: r.radius and f"{_short(r.radius)} ({r.radius_source})",
    "Penalty": lambda r: r.penalty,
    "phi (per column)": lambda r: _short(r.phi),
    "psi (per term)": lambda r: _short(r.psi),
    "Sigma2": lambda r: _short(r.sigma2),
    "Statistic": lambda r: r.statistic,
    "Groups": lambda r: None if r.by is None else f"{len(r.groups)} of {r.by}",
    "Blocks": lambda r: None if r.blocks is None else f"{r.blocks:,}",
    "Column": lambda r: r.column,
    "Bins": lambda r: f"{len(r.labels)} ({r.binning})",
}
