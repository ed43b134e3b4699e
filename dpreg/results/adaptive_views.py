"""What a summary says of an adaptive fit: its looks, its marks, and what its intervals hold.

Tested in `tests/results/test_adaptive.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dpreg.results.report import Block, Grid, Paragraph

if TYPE_CHECKING:
    from dpreg.results.looks import ReleasedLook
    from dpreg.results.regression import RegressionResults

__all__ = [
    "ABOVE_NOISE",
    "CHOOSING",
    "OLD_LOOKS",
    "caution",
    "holds",
    "looks",
    "mark",
    "marked",
    "told",
]

ABOVE_NOISE: Final = "above noise"
OLD_LOOKS: Final = "Intervals of 0.2's looks often do not hold the fit without privacy."

_KINDS: Final = {"box": "in the box", "locating": "to locate", "fitting": "to fit"}
_LOOKS: Final = (
    "Each look after the first releases score and information at the fit that earlier looks gave, "
    "and the last one also the spread of scores. {} that reaches beyond a limit is brought back to "
    "it."
)
CHOOSING: Final = (
    "Each look after the first releases information and score together, of rows and residuals that "
    "are limited narrowly: a found term matters for the bulk of the rows."
)
_NARROW: Final = (
    "Intervals hold what the same limited rows give without privacy, in a model that is right."
)
_FRESH: Final = (
    "The same rows selected the terms, with noise other than that of these estimates; the "
    "intervals do not account for the rows themselves having favoured these terms."
)
_HOLDS: Final = (
    "Errors are robust{}: intervals hold what the fit without privacy gives on the declared "
    "columns, whether the model is right or wrong, where {} are independent."
)
_MIXTURE: Final = (
    "P>|z| and the interval use the law of sampling error and privacy noise together, whose tails "
    "are heavier than normal ones."
)


def mark(why: str | None) -> str:
    """Return a coefficient's mark in a few words; None stands for nothing to be said."""
    return ABOVE_NOISE if why is None else why.partition(":")[0]


def marked(fit: RegressionResults) -> list[Block]:
    """Return a line for each mark other than `ABOVE_NOISE`, with the columns that have it."""
    lines: dict[str, list[str]] = {}
    for name, why in fit.weak.items():
        lines.setdefault(why, []).append(name)
    return [
        Paragraph("Marked", "; ".join(f"{', '.join(names)}: {why}" for why, names in lines.items()))
    ] * bool(lines)


def looks(listed: Sequence[ReleasedLook]) -> list[Block]:
    """Return one line for each look: what it was for, its share of the noise, and its limits."""
    rows = tuple(
        (
            f"look {place}",
            _KINDS[look.kind],
            f"{float(look.share):.2g}",
            *(f"{limit:.3g}" for limit in (*look.limits, None, None)[:2] if limit is not None),
            *[""] * (2 - len(look.limits)),
        )
        for place, look in enumerate(listed, 1)
    )
    headers = ("", "rows are seen", "share", "limit\nof columns", "limit\nof score")
    return [Grid(headers, rows, "llrrr")] if rows else []


def holds(fit: RegressionResults) -> str:
    """Say what the intervals hold, and under which assumption."""
    if fit.claim.person is None:
        return _HOLDS.format("", "rows")
    return _HOLDS.format(" and clustered by person", "persons")


def told(fit: RegressionResults, errors: str, normal: str) -> list[str]:
    """Return what errors, intervals and looks mean.

    `errors` and `normal` are the sentences that other methods' pages have as well.
    """
    law = normal if fit.noise_degrees is None else _MIXTURE
    if fit.among is not None:
        return [_NARROW] * (not fit.bse.isna().all())
    unit = "A row" if fit.claim.person is None else "The sum of a person's rows"
    about = [] if fit.bse.isna().all() else [f"{errors} {law}", holds(fit)]
    return [*about, *[_FRESH] * (fit.fit == "fresh"), _LOOKS.format(unit)]


def caution(fit: RegressionResults | None) -> list[Block]:
    """Say of intervals by the looks of dpreg 0.2 how they fared."""
    if fit is None or fit.method != "staged" or fit.bse.isna().all():
        return []
    return [Paragraph("Caution", OLD_LOOKS)]
