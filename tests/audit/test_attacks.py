"""Attacks from outside that got through once; each with the fault put back, which it must see."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from oracles.bounds import profile_range, residual_sensitivity

import dpreg
from dpreg import cells
from dpreg.api import aggregate
from dpreg.columns import Numeric
from dpreg.errors import DpregWarning
from dpreg.estimation import scaling as scaling_room
from dpreg.formula import design
from dpreg.privacy import account
from dpreg.selection import contest as profile
from dpreg.sources import as_source

# ---- 1. Scores of profile likelihood beyond 64 bits ------------------------------------------


def _huge_count(seed: int, rows: int) -> str:
    """Select with profile likelihood and a count so cheap that it is noise of size 2**43."""
    frame = pd.DataFrame([[0.0, 0.0, 1.0]] * rows, columns=["a", "b", "y"])
    result = dpreg.dp_select(
        "y ~ a + b - 1",
        frame,
        schema=dict.fromkeys("aby", (-1, 1)),
        keep=(),
        eps=200,
        delta="1e-6",
        neighbors="add-remove",
        shares={"count": "8.6e-14"},
        fit=None,
        unsafe_seed=seed,
        method=dpreg.PCPL(radius="0.25"),
    )
    return result.selected_formula


def _huge_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Select as often as it takes, behind the range of eps that refuses so cheap a count."""
    with pytest.raises(dpreg.errors.ArgumentError, match="the step 'number of rows' gets"):
        _huge_count(0, 6)
    monkeypatch.setattr(account, "LEAST_EPS", 0)
    for seed in range(30):
        _huge_count(seed, 6 + seed % 2)


def test_no_count_is_too_large_for_profile_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    _huge_counts(monkeypatch)


def test_a_fixed_grid_overflows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "_ROWS_BITS", 10**6)
    with pytest.raises((OverflowError, RuntimeWarning)):
        _huge_counts(monkeypatch)


@pytest.mark.parametrize("rows", [2**32 - 1, 2**32, 2**35, 2**63, 10**40, 10**400])
def test_scores_of_any_number_of_rows_fit_their_width(rows: int) -> None:
    residuals = np.array([1, 2, 3, 2**40, 2**61 - 1, 2**61], dtype=np.int64)
    scores = profile.profile_scores(residuals, rows)
    assert (np.diff(scores) >= 0).all()
    assert 2**58 < int(scores[-1]) < 2**61 or rows < 2**31
    unit = profile.profile_grid(rows)
    span = profile_range(2**30, rho=Fraction(1), rows=rows, neighbors="add-remove", contributions=1)
    moved = residual_sensitivity(Fraction(1), 1)
    pair = np.array([2**30 + moved, 2**30 + 2 * moved], dtype=np.int64)
    found = np.diff(profile.profile_scores(pair, rows))[0]
    assert 0 < found <= span
    assert span * unit < Fraction(rows) + unit * 4


# ---- 2. One row that changes every block -----------------------------------------------------


def _blocks_width(last: object) -> float:
    """Return what 400 blocks say of the width of a column of labels, the last row being `last`."""
    labels = pd.Series(["u", "v"] * 1_999 + ["u", last]).astype("category")
    frame = pd.DataFrame({"g": labels, "x": [1] * 3_999 + [None if last is None else 1]})
    frame.attrs["last"] = last
    found = dpreg.sample_aggregate(
        lambda block: (
            pd.get_dummies(block["g"]).shape[1] + 4 * (block["x"].dtype != float) + len(block.attrs)
        ),
        frame,
        schema={"g": ["u", "v"], "x": (0, 1)},
        eps=10**6,
        bounds=(0, 20),
        blocks=400,
    )
    return float(found.params.iloc[0])


def test_one_row_does_not_change_every_block() -> None:
    assert {round(_blocks_width(last), 2) for last in ("v", "w", None, 7, "u")} == {2.0}


def test_blocks_of_the_frame_itself_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = aggregate.block_table

    def raw(asked: Any, call: Any) -> Any:
        table = honest(asked, call)
        read = table.read
        table.read = lambda: (read(), setattr(table, "held", call["data"]))[0]
        return table

    monkeypatch.setattr(aggregate, "block_table", raw)
    assert len({round(_blocks_width(last), 2) for last in ("v", "w", None)}) > 1


# ---- 3. Kinds that pandas infers from rows ---------------------------------------------------


def _observed(call: Callable[[pd.DataFrame], Any], odd: object) -> tuple[object, ...]:
    """Return what a call shows of a table whose undeclared column has an odd cell."""
    frame = pd.DataFrame({"y": np.linspace(0, 1, 400), "x": [True, False] * 199 + [True, odd]})
    ledger = dpreg.Ledger(dpreg.Budget(100, "0.1"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call(frame, budget=ledger)
    told = tuple(str(one.message) for one in caught)
    assert all(issubclass(one.category, DpregWarning) for one in caught)
    names = tuple(result.columns.items()) if hasattr(result, "columns") else (*result.params.index,)
    charged = tuple((entry.what, str(entry.budget)) for entry in ledger.entries)
    return (told, tuple(result.budget.index), tuple(result.budget["eps"]), names, charged)


CALLS: dict[str, Callable[..., Any]] = {
    "select": lambda frame, **o: dpreg.dp_select(
        "y ~ x", frame, eps=50, schema={"y": (0, 1)}, fit=None, **o
    ),
    "ols": lambda frame, **o: dpreg.dp_ols("y ~ x", frame, eps=50, schema={"y": (0, 1)}, **o),
    "glm": lambda frame, **o: dpreg.dp_glm("y ~ x", frame, eps=50, delta="1e-6", **o),
    "select a family": lambda frame, **o: dpreg.dp_select(
        "y ~ x", frame, eps=50, delta="1e-6", family="binomial", fit="fresh", **o
    ),
}
ODD = (False, None, np.nan, 2, "word", 1.5, b"x", [1])


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_cell_changes_what_is_bought_warned_or_named(call: Callable[..., Any]) -> None:
    seen = {str(_observed(call, odd)) for odd in ODD}
    assert len(seen) == 1
    (only,) = seen
    assert "leaves out x" in only


def test_kinds_that_decide_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: a column that pandas calls bool is not among those whose bounds are bought."""
    honest = design.undeclared

    def by_kind(formula: str, schema: Any, source: Any) -> tuple[str, ...]:
        return tuple(n for n in honest(formula, schema, source) if source.kind(n) != "bool")

    from dpreg.api import context

    monkeypatch.setattr(context, "undeclared", by_kind)
    seen = set()
    for odd in (False, None):
        try:
            seen.add(str(_observed(CALLS["ols"], odd)))
        except dpreg.errors.DpregError as err:
            seen.add(str(err))
    assert len(seen) > 1


# ---- 5. A cell's own code --------------------------------------------------------------------


class Ran(BaseException):
    """A cell's own code ran."""


def _hostile(base: type) -> Any:
    def run(*_: object) -> Any:
        raise Ran(base.__name__)

    names = {name for name in dir(base) if name.startswith("__")} - {
        "__new__", "__init__", "__class__", "__init_subclass__", "__subclasshook__", "__del__",
        "__getattribute__", "__setattr__", "__delattr__", "__dict__", "__slots__", "__doc__",
        "__module__", "__weakref__", "__getnewargs__", "__reduce__", "__reduce_ex__",
        "__getstate__", "__setstate__", "__sizeof__", "__dir__", "__array_interface__",
        "__array_struct__", "__array_priority__", "__class_getitem__",
    }  # fmt: skip
    body: dict[str, Any] = {name: run for name in names if callable(getattr(base, name))}
    body |= {"real": property(run), "imag": property(run), "numerator": property(run)}
    kind = type(f"Hostile{base.__name__}", (base,), body)
    return base.__new__(kind, 1)


BASES = (Decimal, Fraction, complex, np.int64, np.float64, np.str_, int, float, str)


def _read_all(cell: Any) -> tuple[object, ...]:
    coders = (cells.LevelCoder(["1", "True"]), cells.LevelCoder([1, 2]))
    return (cells.number(cell), cells.truth(cell), *(coder.cell(cell) for coder in coders))


@pytest.mark.parametrize("base", BASES)
def test_no_cell_runs_its_own_code(base: type) -> None:
    found = _read_all(_hostile(base))
    assert all(one != one or one == -1 for one in found)
    honest = _read_all(base(1))
    assert honest == (1.0, 1.0, 0, 0)


@pytest.mark.parametrize("base", [Decimal, Fraction, complex, np.int64])
def test_a_whole_call_counts_such_a_cell_as_missing(base: type) -> None:
    ledger = dpreg.Ledger(1)
    column = [0.5, 0.25, _hostile(base)] * 5
    dpreg.dp_mean("x", {"x": column}, bounds=(0, 1), eps=1, budget=ledger)
    assert len(ledger.entries) == 1


def test_the_old_reading_by_subclass_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_subclass(cell: Any) -> float:
        return float(cell) if issubclass(type(cell), (int, float, Decimal)) else 0.0

    monkeypatch.setattr(cells, "number", by_subclass)
    with pytest.raises(Ran):
        _read_all(_hostile(Decimal))


# ---- 4. Dask's conversion to text ------------------------------------------------------------

NO_TEXT = (b"\xff", "\ud800", "a\ud800", bytearray(b"\xff"))


@pytest.mark.parametrize("choose", [False, True])
@pytest.mark.parametrize("odd", NO_TEXT)
def test_no_cell_of_a_declared_column_fails_dask(odd: object, choose: bool) -> None:
    held = pd.DataFrame({"c": pd.Series(["1", odd, 3, True], dtype=object), "y": [0.5] * 4})
    table = dd.from_pandas(held, npartitions=2)
    source = as_source(table[["y", "c"]] if choose else table)
    how = {"c": Numeric(0, 5), "y": Numeric(0, 1)}
    assert source.total(how, total_of_c).tolist() == [5, 4]


def total_of_c(chunks: Any) -> Any:
    """Add the numbers of column c, and count the rows."""
    found = [np.zeros(2, dtype=np.int64)]
    found += [np.array([np.nansum(chunk["c"]), len(chunk["c"])], np.int64) for _, chunk in chunks]
    return sum(found)


def test_dask_s_own_conversion_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpreg.sources import dask as dask_room

    monkeypatch.setattr(dask_room, "_as_loaded", lambda data: data)
    with pytest.raises(dpreg.errors.DataError, match="Dask failed"):
        test_no_cell_of_a_declared_column_fails_dask(b"\xff", False)


# ---- 6. A row's neighbours -------------------------------------------------------------------


def _scaled_alone_and_together(kind: str) -> list[bool]:
    rng = np.random.default_rng(0)
    same = []
    for columns in range(1, 40):
        scaling = scaling_room.row_scaling(kind, mean=np.zeros(columns), sd=np.ones(columns))
        x, y = rng.normal(size=(64, columns)), rng.normal(size=64)
        together = scaling.apply(x, y)
        for place in range(0, 64, 9):
            alone = scaling.apply(x[place : place + 1], y[place : place + 1])
            turned = scaling.apply(np.asfortranarray(x)[place : place + 3], y[place : place + 3])
            same += [
                np.array_equal(alone[0][0], together[0][place]),
                np.array_equal(turned[0][0], together[0][place]),
            ]
    return same


@pytest.mark.parametrize("kind", ["row-norm", "row-norm-xy"])
def test_a_row_is_scaled_alike_beside_any_others(kind: str) -> None:
    assert all(_scaled_alone_and_together(kind))


def test_numpy_s_own_order_of_a_sum_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling_room, "_squares", lambda rows: (rows**2).sum(axis=1))
    assert not all(_scaled_alone_and_together("row-norm"))
