"""What an error may say of an argument: no row, whatever was put in the argument's place."""

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import ArgumentError, DataError, LedgerError, SchemaError, quotable, shown
from dpreg.paths import check_writable, ordinary, read_text
from dpreg.sources.files import check_not_data

NUMBER, NAME = 52311.25, "Zxqvk"
SECRETS = ("52311", NAME)
TABLE = pd.DataFrame({"x": [NUMBER, 4.5, 77.125] * 4, "g": [NAME, "b", "c"] * 4, "y": 1.5})
MISPLACED: dict[str, Any] = {
    "csv": TABLE.to_csv(index=False),
    "headless": TABLE.to_csv(index=False, header=False),
    "json": TABLE.to_json(),
    "printed": str(TABLE.x.tolist()),
    "dated": "1/2/2020,52311.25\n" + TABLE.to_csv(),
    "list": [NUMBER, *TABLE.g],
    "numbers": TABLE.x.tolist(),
    "tuple": tuple(TABLE.x),
    "array": TABLE.x.to_numpy(),
    "objects": TABLE.g.to_numpy(),
    "cell": -TABLE.x.to_numpy()[0],
    "word": np.str_(NAME),
    "series": TABLE.x,
    "frame": TABLE,
}
SCHEMA = {"x": (0, 100), "y": (0, 10), "g": ["a", "b"]}
LINE = {"formula": "y ~ x", "data": TABLE, "schema": SCHEMA, "eps": 1}
ONE = {"x": "x", "data": TABLE, "eps": 1, "bounds": (0, 100)}
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "dp_ols": (dpreg.dp_ols, LINE),
    "dp_glm": (dpreg.dp_glm, {**LINE, "family": "poisson"}),
    "dp_select": (dpreg.dp_select, LINE),
    "dp_mean": (dpreg.dp_mean, ONE),
    "dp_quantile": (dpreg.dp_quantile, {**ONE, "q": 0.5}),
    "dp_histogram": (dpreg.dp_histogram, ONE),
    "sample_aggregate": (
        dpreg.sample_aggregate,
        {"estimator": lambda _: 1.0, "data": TABLE, "eps": 1, "bounds": (0, 1), "blocks": 2},
    ),
    "plan": (dpreg.plan, {"effects": {"x": 1}, "n": 100, "eps": 1}),
    "load": (dpreg.load, {}),
    "from_file": (dpreg.Schema.from_file, {}),
}
MEANT = {("data", kind) for kind in ("frame", "array", "objects", "numbers", "list", "tuple")}
"""Places where rows belong. What such a call says is asked of all tables in other tests."""

_NAMED = ("keep", "offset", "exposure", "where", "weights")
NAMES = {("keep", "objects"), *((name, "word") for name in _NAMED)}
"""Single words where names of columns or terms belong: a misspelt one is quoted."""


def places() -> Iterator[Any]:
    """Every argument of every call, with every kind of rows in its place."""
    for name, (call, _) in CALLS.items():
        for argument, kind in itertools.product(inspect.signature(call).parameters, MISPLACED):
            if (argument, kind) not in MEANT | NAMES:
                yield pytest.param(name, argument, kind, id=f"{name}-{argument}-{kind}")


def told(error: BaseException | None) -> str:
    """All that an error, its cause and its context say."""
    texts = []
    while error is not None:
        texts.append(f"{error} {error.args}")
        if error.__cause__ is not None:
            texts.append(told(error.__cause__))
        error = error.__context__
    return " ".join(texts)


def said(call: Callable[[], object]) -> str:
    """What a call says while it fails, or of what it does."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            text = told(error)
        else:
            text = ""
    return " ".join([text, *(str(one.message) for one in heard)])


@pytest.mark.parametrize(("name", "argument", "kind"), list(places()))
def test_rows_in_the_place_of_an_argument_are_not_told(
    name: str, argument: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, given = CALLS[name]
    text = said(lambda: call(**{**given, argument: MISPLACED[kind]}))
    assert not [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize("use", [ordinary, read_text, check_writable, check_not_data])
@pytest.mark.parametrize("kind", ["csv", "headless", "json", "printed", "dated"])
@pytest.mark.parametrize("times", [1, 50])
def test_the_text_of_a_table_in_the_place_of_a_path_is_not_told(
    use: Callable[[Any], object], kind: str, times: int, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    text = said(lambda: use(MISPLACED[kind] * times))
    assert not [secret for secret in SECRETS if secret in text]


def test_the_text_of_a_table_in_the_place_of_a_ledger_is_not_told() -> None:
    text = said(lambda: dpreg.Ledger(1, MISPLACED["csv"] * 50))
    assert "cannot be used" in text
    assert not [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("agee", "'agee'"),
        ("x" * 90, repr("x" * 77 + "...")),
        ("y ~ x\n", r"'y ~ x\n'"),
        ("x\n1", "(text that may hold rows)"),
        (' {"x": 1}', "(text that may hold rows)"),
        (-1, "-1"),
        (1.5, "1.5"),
        (True, "True"),
        (None, "None"),
        (Fraction(1, 3), "Fraction(1, 3)"),
        (Decimal("0.1"), "Decimal('0.1')"),
        (np.float64(1.5), "a float64"),
        (np.int64(3), "an int64"),
        (np.str_("x"), "a str_"),
        ([1], "a list"),
        (np.zeros(2), "an ndarray"),
        (TABLE, "a DataFrame"),
    ],
)
def test_an_argument_is_told_by_its_value_or_by_its_type(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: dpreg.load("none.json"), DataError, "there is no file 'none.json'"),
        (lambda: dpreg.load("n/o.json"), DataError, "there is no folder '.*n'"),
        (lambda: dpreg.Schema.from_file("a.txt"), SchemaError, "schema file 'a.txt': the name"),
        (lambda: dpreg.Schema.from_file("a.json"), SchemaError, "there is no file 'a.json'"),
        (lambda: dpreg.Ledger(1, "n/o.ledger"), LedgerError, "there is no folder '.*n'"),
        (lambda: dpreg.dp_mean(**{**ONE, "eps": -1}), ArgumentError, "eps must be above 0; got -1"),
        (lambda: dpreg.dp_mean(**{**ONE, "neighbors": "add"}), ArgumentError, "got 'add'"),
        (lambda: dpreg.dp_mean(**{**ONE, "neighbors": [1]}), ArgumentError, "got a list"),
    ],
)
def test_a_slip_of_the_pen_is_still_quoted(
    call: Callable[[], object], error: type[Exception], text: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=text):
        call()


def test_what_is_quotable_is_one_line() -> None:
    assert all(map(quotable, ("a,b", "", "a\n")))
    assert not any(map(quotable, ("a\rb", "a\nb", "[1, 2]", "a\u2028b")))
