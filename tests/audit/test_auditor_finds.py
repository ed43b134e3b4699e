"""Attacks that got through once: with its mend reverted the auditor finds each by itself."""

import sys
from collections.abc import Iterator
from decimal import Decimal
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg import cells
from dpreg.api import aggregate, context
from dpreg.audit import CallAudit, audit_call
from dpreg.formula import design
from dpreg.privacy import account
from dpreg.selection import contest as profile


def _says(audit: CallAudit) -> str:
    return "\n".join(map(str, audit.findings))


# ---- 1. Scores beyond 64 bits, at a count that is noise of size 2**43 --------------------------


def _profile(seeds: Iterator[int]) -> Any:
    return lambda data, ledger: dpreg.dp_select(
        "y ~ a + b - 1",
        data,
        schema=dict.fromkeys("aby", (-1, 1)),
        keep=(),
        eps=200,
        delta="1e-6",
        neighbors="add-remove",
        shares={"count": "8.6e-14"},
        fit=None,
        budget=ledger,
        unsafe_seed=next(seeds),
        method=dpreg.PCPL(radius="0.25"),
    )


SIX = pd.DataFrame([[0.0, 0.0, 1.0]] * 6, columns=["a", "b", "y"])
SEVEN = pd.DataFrame([[0.0, 0.0, 1.0]] * 7, columns=["a", "b", "y"])


@pytest.mark.parametrize("mended", [True, False])
def test_an_overflow_after_the_charge(mended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "LEAST_EPS", 0)  # a call refuses so cheap a count
    if not mended:
        monkeypatch.setattr(profile, "_ROWS_BITS", 10**6)
    # About one draw in six overflows: private ones might all miss, once in 100,000 times.
    audit = audit_call(_profile(count()), SIX, SEVEN, runs=30)
    assert ("an exception after the charge" in _says(audit)) != mended
    assert audit.passed == mended, audit


# ---- 2. Kinds that pandas inferred reach every block -------------------------------------------


def _width(seeds: Iterator[int]) -> Any:
    return lambda data, ledger: dpreg.sample_aggregate(
        lambda block: len(block["g"].cat.categories),
        data,
        schema={"g": ["u", "v"]},
        eps="0.2",
        bounds=(1, 4),
        blocks=160,
        correct_bias=False,
        aggregation="mean",
        budget=ledger,
        unsafe_seed=next(seeds),
    )


@pytest.mark.parametrize("mended", [True, False])
def test_one_row_in_every_block(mended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = ["u", "v"] * 400
    one = pd.DataFrame({"g": pd.Series(labels, dtype="category")})
    two = pd.DataFrame({"g": pd.Series([*labels[:-1], "w"], dtype="category")})
    if not mended:
        honest = aggregate.block_table

        def raw(asked: Any, call: Any) -> Any:
            table = honest(asked, call)
            read = table.read
            table.read = lambda: (read(), setattr(table, "held", call["data"]))[0]
            return table

        monkeypatch.setattr(aggregate, "block_table", raw)
    # Private draws would be blamed by chance, once in a hundred times at most.
    audit = audit_call(_width(count()), one, two, runs=40, confidence=0.99)
    assert audit.passed == mended, audit
    assert (audit.bound > 0.2) != mended


# ---- 3. An inferred kind decides what is bought and warned of ----------------------------------


def _fit(data: pd.DataFrame, ledger: dpreg.Ledger) -> Any:
    return dpreg.dp_ols("y ~ x", data, eps=50, schema={"y": (0, 1)}, budget=ledger)


@pytest.mark.parametrize("mended", [True, False])
def test_a_kind_decides_a_budget_row(mended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.linspace(0, 1, 400)
    one = pd.DataFrame({"y": y, "x": [True, False] * 200})
    two = pd.DataFrame({"y": y, "x": [True, False] * 199 + [True, None]})
    if not mended:
        honest = design.undeclared

        def by_kind(formula: str, schema: Any, source: Any) -> tuple[str, ...]:
            return tuple(n for n in honest(formula, schema, source) if source.kind(n) != "bool")

        monkeypatch.setattr(context, "undeclared", by_kind)
    audit = audit_call(_fit, one, two, runs=4)
    assert ("before the charge tells the tables apart" in _says(audit)) != mended
    assert audit.passed == mended, audit


# ---- 5. A cell's own code ----------------------------------------------------------------------


class Own(Decimal):
    """A number with a text of its own to raise."""

    def __float__(self) -> float:
        raise ValueError("what this cell wants known")


@pytest.mark.parametrize("mended", [True, False])
def test_a_cell_speaks(mended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not mended:
        honest = cells.number

        def by_subclass(cell: Any) -> float:
            return float(cell) if isinstance(cell, Decimal) else honest(cell)

        for name, module in list(sys.modules.items()):
            if name.startswith("dpreg") and getattr(module, "number", None) is honest:
                monkeypatch.setattr(module, "number", by_subclass)

    def mean(data: Any, ledger: dpreg.Ledger) -> Any:
        return dpreg.dp_mean("x", data, bounds=(0, 1), eps=1, budget=ledger)

    plain = [0.5, Decimal("0.25")] * 10
    audit = audit_call(mean, {"x": plain}, {"x": [*plain[:-1], Own("0.25")]}, runs=4)
    assert ("what this cell wants known" in _says(audit)) != mended
    assert audit.passed == mended, audit
