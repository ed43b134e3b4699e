"""What the auditor shows of every public call, beside what the call claims.

`python -m benchmarks.audited [--runs N] [WORD ...]` runs `dpreg.audit.audit_call` on each call, for
both relations, with one row a person and with persons who own rows, and prints a table. Words pick
the calls whose name holds one of them. Neighbours differ by one row, or one person's rows, at
opposite corners of the box, among rows that are nearly alike. Exits with 1 if anything breaks a
promise.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

import dpreg
from dpreg.audit import audit_call

ROWS, OWNED = 300, 2
SCHEMA = {"x": (-1, 1), "y": (-1, 1), "z": (0, 4), "h": (0, 1), "g": ["u", "v"]}
DELTA = {"delta": "0.01"}


def _mean_of(block: pd.DataFrame) -> Any:
    return block["x"].mean()


CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "dp_ols, looks": (dpreg.dp_ols, {"formula": "y ~ x", "method": "adaptive", **DELTA}),
    "dp_ols, looks, pure": (dpreg.dp_ols, {"formula": "y ~ x", "method": "adaptive"}),
    "dp_ols, looks, rows capped": (
        dpreg.dp_ols, {"formula": "y ~ x", "method": "adaptive", "contributions": 1, **DELTA}
    ),
    "dp_ols, one look": (dpreg.dp_ols, {"formula": "y ~ x", "method": "gram", **DELTA}),
    "dp_ols, one look, pure": (dpreg.dp_ols, {"formula": "y ~ x", "method": "gram"}),
    "dp_ols, objective": (dpreg.dp_ols, {"formula": "y ~ x", "method": "objective", **DELTA}),
    "dp_ols, objective, pure": (dpreg.dp_ols, {"formula": "y ~ x", "method": "objective"}),
    "dp_ols, adassp": (dpreg.dp_ols, {"formula": "y ~ x", "method": "adassp", "delta": "1e-6"}),
    "dp_glm, logit": (dpreg.dp_glm, {"formula": "h ~ x", **DELTA}),
    "dp_glm, logit, pure": (dpreg.dp_glm, {"formula": "h ~ x"}),
    "dp_glm, counts": (dpreg.dp_glm, {"formula": "z ~ x", "family": "poisson", **DELTA}),
    "dp_glm, counts, pure": (dpreg.dp_glm, {"formula": "z ~ x", "family": "poisson"}),
    "dp_select, looks": (
        dpreg.dp_select, {"formula": "y ~ x + z", "method": "adaptive", **DELTA}
    ),
    "dp_select, looks, pure": (dpreg.dp_select, {"formula": "y ~ x + z", "method": "adaptive"}),
    "dp_select, looks, refit": (
        dpreg.dp_select, {"formula": "y ~ x + z", "method": "adaptive", "fit": "fresh", **DELTA}
    ),
    "dp_select, pcls": (dpreg.dp_select, {"formula": "y ~ x + z", "method": "pcls"}),
    "dp_select, pcpl": (
        dpreg.dp_select, {"formula": "y ~ x + z", "method": "pcpl", "fit": "share", **DELTA}
    ),
    "dp_select, logit": (dpreg.dp_select, {"formula": "h ~ x + z", "family": "binomial", **DELTA}),
    "dp_select, logit, pure": (dpreg.dp_select, {"formula": "h ~ x + z", "family": "binomial"}),
    "dp_mean": (dpreg.dp_mean, {"x": ["x", "y"]}),
    "dp_mean, by group": (dpreg.dp_mean, {"x": "y", "by": "g", "noise": "gaussian", **DELTA}),
    "dp_mean, some rows": (dpreg.dp_mean, {"x": "y", "where": "x > 0"}),
    "dp_suffstats": (dpreg.dp_suffstats, {"x": "y"}),
    "dp_histogram": (dpreg.dp_histogram, {"x": "y"}),
    "dp_histogram, by group": (
        dpreg.dp_histogram, {"x": "y", "by": "g", "bins": 4, "noise": "gaussian", **DELTA}
    ),
    "dp_quantile": (dpreg.dp_quantile, {"x": "y", "q": 0.5}),
    "dp_quantile, several": (dpreg.dp_quantile, {"x": "y", "q": [0.25, 0.5, 0.75]}),
    "sample_aggregate": (
        dpreg.sample_aggregate, {"estimator": _mean_of, "bounds": (-1, 1), "blocks": 20}
    ),
    "sample_aggregate, gaussian": (
        dpreg.sample_aggregate,
        {"estimator": _mean_of, "bounds": (-1, 1), "blocks": 20, "noise": "gaussian", **DELTA},
    ),
}  # fmt: skip
EPS = "4"


def pair(neighbors: str, person: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return neighbours: the last row, or all rows of the last person, at opposite corners."""
    rng = np.random.default_rng(1)
    many = OWNED if person else 1
    rows = pd.DataFrame(
        {
            "x": rng.uniform(-0.1, 0.1, ROWS),
            "y": rng.uniform(-0.1, 0.1, ROWS),
            "z": rng.integers(0, 2, ROWS),
            "h": rng.integers(0, 2, ROWS),
            "g": "u",
            "who": [f"p{j // OWNED}" for j in range(ROWS)],
        }
    )
    one = rows.iloc[-many:].assign(x=1.0, y=1.0, z=4, h=1, g="v", who="one")
    other = one.assign(y=-1.0, z=0, h=0, g="u", who="other")
    common = rows.iloc[:-many]
    table = pd.concat([common, one], ignore_index=True)
    if neighbors == "add-remove":
        return table, common
    return table, pd.concat([common, other], ignore_index=True)


def audited(words: list[str], runs: int) -> Iterator[tuple[str, bool]]:
    """Yield a line of the table for each audit, and whether nothing was found."""
    for name, (call, asked) in CALLS.items():
        for neighbors in ("replace-one", "add-remove"):
            for person in (False, True):
                options = asked | {"eps": EPS, "neighbors": neighbors, "schema": SCHEMA}
                unit = "a person" if person else "a row"
                if words and not any(word in f"{name}, {neighbors}, {unit}" for word in words):
                    continue
                if person and asked.get("method") == "objective":
                    continue  # takes no person
                if not person and "contributions" in asked:
                    continue  # of rows it would say nothing new
                if person:  # looks sum all rows of a person, unless they are told of a cap
                    summed = "looks" in name or call is dpreg.dp_glm or "family" in asked
                    capped = {} if summed else {"contributions": OWNED}
                    options |= {"person": "who"} | capped

                def made(data: Any, ledger: Any, call: Any = call, told: Any = options) -> Any:
                    return call(data=data, budget=ledger, progress=False, **told)

                found = audit_call(made, *pair(neighbors, person), runs=runs, progress=False)
                told = "; ".join(map(str, found.findings)) or "nothing"
                yield (
                    f"| {name} | {neighbors}, {unit} | {found.charged} | {max(found.bound, 0):.2f} "
                    f"| {found.runs:,} | {told} |",
                    found.passed,
                )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audited", description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--runs", type=int, default=1000)
    chosen = parser.parse_args()
    print("| call | relation, unit | claim | eps is at least | runs a side | found |")
    print("|---|---|---|---|---|---|")
    passed = True
    for line, fine in audited(chosen.words, chosen.runs):
        print(line, flush=True)
        passed &= fine
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
