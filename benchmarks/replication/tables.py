"""What the lines of all runs say: a row for each analysis, and a list of what fails."""

from __future__ import annotations

import pandas as pd

_KEYS = ["delta", "eps", "method", "analysis", "n", "p"]


def summary(lines: pd.DataFrame) -> pd.DataFrame:
    """Shares and medians over coefficients (the intercept left out) and runs."""
    slopes = lines[lines["coefficient"] != "Intercept"]
    slopes = slopes.assign(away=slopes["bias"].abs())
    found = slopes.groupby(_KEYS).agg(
        sign=("sign", "mean"),
        decision=("decision", "mean"),
        overlap=("overlap", "median"),
        width=("width", "median"),
        bias=("away", "median"),
        flagged=("weak", "mean"),
    )
    # An analysis survives a run where every coefficient leads to the same conclusion.
    whole = slopes.groupby([*_KEYS, "run"])["conclusion"].min().groupby(level=_KEYS).mean()
    return found.assign(all_same=whole).round(3)


def failures(lines: pd.DataFrame, least: float = 0.9) -> pd.DataFrame:
    """Coefficients of dpreg's default whose decision survives in fewer than `least` of the runs."""
    ours = lines[(lines["method"] == "auto") & (lines["coefficient"] != "Intercept")]
    keys = ["delta", "eps", "analysis", "coefficient"]
    found = ours.groupby(keys).agg(
        decision=("decision", "mean"),
        overlap=("overlap", "median"),
        width=("width", "median"),
        bias=("bias", "median"),
        weak=("weak", "mean"),
    )
    return found[found["decision"] < least].round(3)


def goals(lines: pd.DataFrame, rows: int = 20_000, columns: int = 15) -> pd.DataFrame:
    """Over all analyses of at least so many rows and at most so many columns, by method.

    Medians over coefficients and runs; shares of both.
    """
    large = lines[(lines["n"] >= rows) & (lines["p"] <= columns)]
    slopes = large[large["coefficient"] != "Intercept"]
    slopes = slopes.assign(away=slopes["bias"].abs())
    return (
        slopes.groupby(["delta", "eps", "method"])
        .agg(
            overlap=("overlap", "median"),
            decision=("decision", "mean"),
            sign=("sign", "mean"),
            width=("width", "median"),
            bias=("away", "median"),
        )
        .round(3)
    )
