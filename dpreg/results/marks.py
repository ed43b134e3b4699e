"""Marks of coefficients: what a release does not show of them, in a letter and in words.

Tested in `tests/results/test_page.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dpreg.results.regression import RegressionResults

__all__ = ["ABOVE_NOISE", "explained", "letters", "mark"]

ABOVE_NOISE: Final = "above noise"
_LETTERS: Final = {
    "not significant": "0",
    "wide": "w",
    "narrow": "n",
    "too few rows to say": "?",
    "hidden direction": "h",
    "rare level": "r",
}


def mark(why: str | None) -> str:
    """Return a coefficient's mark in a few words; None stands for nothing to be said."""
    return ABOVE_NOISE if why is None else why.partition(":")[0]


def _reasons(fit: RegressionResults, alpha: float) -> list[list[str]]:
    """Return what is to be said of each coefficient."""
    zero = f"not significant at the {100 * alpha:g}% level, which does not show it is 0"
    return [
        [zero] * bool(p >= alpha and name != "Intercept")
        + [why for why in [fit.weak.get(name)] if why]
        for name, p in zip(fit.exog_names, fit.pvalues, strict=True)
    ]


def _letter(why: str) -> str:
    return next((letter for start, letter in _LETTERS.items() if why.startswith(start)), "*")


def letters(fit: RegressionResults, alpha: float) -> list[str]:
    """Return each coefficient's marks, a letter each; none where nothing is to be said."""
    return ["".join(map(_letter, each)) for each in _reasons(fit, alpha)]


def explained(fit: RegressionResults, alpha: float) -> str:
    """Say what the letters mean that occur."""
    every = dict.fromkeys(why for each in _reasons(fit, alpha) for why in each)
    return "; ".join(f"{_letter(why)} = {why}" for why in every)
