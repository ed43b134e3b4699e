"""What the summaries of means, quantiles, families and histograms say: results in, `Report` out.

Tested in `tests/results/test_classic.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from dpreg.results import opening
from dpreg.results.fit_views import ERRORS
from dpreg.results.report import Block, Facts, Grid, Report
from dpreg.results.views import closing, fixed, privacy_facts

if TYPE_CHECKING:
    from dpreg.results.classic import ClassicResults, Estimates
    from dpreg.results.histogram import HistogramResults

__all__ = ["classic", "histogram"]

_NORMAL: Final = "The interval uses std err and the normal law."
_MANY_BINS: Final = 20
"""A histogram of more bins is printed as a picture; `conf_int` has its intervals."""
_BAR: Final = 24
_SHARES: Final = (
    "The interval uses std err and the normal law about the share that two more rows in the bin "
    "and two more outside would give, and ends at 0 and 1."
)
_PROBABILITY: Final = (
    "The interval uses std err and the normal law about the share of ones that two more ones and "
    "two more zeros would give, and ends at 0 and 1."
)
_PICTURE: Final = (
    "std err holds sampling error and privacy noise together; conf_int() has the intervals."
)
_RANKS: Final = "The interval runs between two released quantiles and assumes no law."
_STRETCHED: Final = (
    "The interval runs between two released quantiles, stretched to this level as a normal one "
    "would be and cut at the bounds."
)


def classic(result: ClassicResults, alpha: float) -> Report:
    """Return the page of means, quantiles, parameters or an aggregate."""
    left = [("Statistic", result.statistic), ("Noise", result.noise)]
    if result.by is not None:
        left.append(("Groups", f"{len(result.groups)} of {result.by}"))
    if result.blocks is not None:
        left.append(("Blocks", f"{result.blocks:,}"))
    if result.counts is not None and not result.groups:
        left.append(("Complete, noisy", f"{result.counts[0]:,.0f}"))
    law = _law(result, alpha)
    notes = [*result.remarks, ERRORS, law, *result.notes]
    facts = Facts(tuple(left), privacy_facts(result))
    blocks: list[Block] = [*opening.estimates(result, alpha), facts, _table(result, "coef", alpha)]
    title = f"Private {result.statistic}"
    return Report(title, result.claim.stamp, (*blocks, *closing(result.claim, notes)))


def _law(result: ClassicResults, alpha: float) -> str:
    """Say what the intervals rest on."""
    if result.lower is not None:
        return _RANKS if alpha == result.alpha else _STRETCHED
    if result.blocks is not None:
        degrees = max(result.blocks - 1, 1)
        return f"The interval uses std err and Student's law, with {degrees:,} degrees of freedom."
    return _NORMAL if result.share_rows is None else _PROBABILITY


def histogram(result: HistogramResults, alpha: float) -> Report:
    """Return the page of a histogram."""
    left = [
        ("Column", result.column),
        ("Bins", f"{len(result.labels)} ({result.binning})"),
        ("Noise", result.noise),
    ]
    if result.by is not None:
        left.append(("Groups", f"{len(result.groups)} of {result.by}"))
    picture = len(result.labels) > _MANY_BINS and not result.groups
    table = _picture(result) if picture else _table(result, "share", alpha)
    blocks = (opening.cost(result.claim), Facts(tuple(left), privacy_facts(result)), table)
    title = f"Private histogram: {result.column}"
    told = [_PICTURE] if picture else [ERRORS, _SHARES]
    notes = [*told, *result.notes]
    return Report(title, result.claim.stamp, (*blocks, *closing(result.claim, notes)))


def _table(result: Estimates, head: str, alpha: float) -> Grid:
    limits = result.conf_int(alpha).to_numpy()
    columns = (
        result.estimates,
        result.bse.to_numpy(),
        *limits.T,
        result.bse_sampling.to_numpy(),
        result.bse_privacy.to_numpy(),
    )
    names: list[tuple[str, ...]] = [(label,) for label in result.labels]
    if result.groups:
        names = [(group, label) for group in result.groups for label in result.labels]
        if len(result.labels) == 1:
            names = [(group,) for group in result.groups]
    rows = tuple(
        (*name, fixed(first, 4), *(fixed(value, 4) for value in rest))
        for name, first, *rest in zip(names, *columns, strict=True)
    )
    first = (result.by or "",) if len(names[0]) == 1 else (result.by or "", "")
    ends = (f"[{alpha / 2:.5g}", f"{1 - alpha / 2:.5g}]")
    headers = (*first, head, "std err", *ends, "sampling\nerror", "privacy\nnoise")
    return Grid(headers, rows, "l" * len(first) + "r" * 6)


def _picture(result: HistogramResults) -> Grid:
    """Return the shares of many bins as bars, on one line each."""
    shares, errors = result.estimates, result.bse.to_numpy()
    bars = result.heights(result.probabilities)
    top = max(float(bars.max()), float(np.finfo(float).tiny))
    # All as fine as the least error: shares of bins that hold nothing are read beside the others.
    least = min((float(error) for error in errors if 0 < error < 1), default=1.0)
    places = max(4, min(1 - math.floor(math.log10(least)), 9))
    rows = tuple(
        (name, _fine(share, places), _fine(error, places), "#" * round(_BAR * max(bar, 0.0) / top))
        for name, share, error, bar in zip(result.labels, shares, errors, bars, strict=True)
    )
    return Grid(("", "share", "std err", "density"), rows, "lrrl")


def _fine(number: float, places: int) -> str:
    """Return a number with so many decimal places, or as in tables where that is too long."""
    return f"{number:z.{places}f}" if abs(number) < 1e5 else fixed(number, places)
