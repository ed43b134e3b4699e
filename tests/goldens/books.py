"""What ledgers say: charges, what is left, refusals, exports and the command's output.

Times, random names, hashes and the folder are written as words, since they differ in each run.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

from goldens.calls import SCHEMA, drawn

import dpreg
from dpreg.cli import main
from dpreg.errors import DpregError

_WORDS = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "NAME"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT[0-9:.]+(?:\+00:00|Z)"), "TIME"),
    (re.compile(r"\b20\d\d(?:-\d\d){0,2}\b"), "PERIOD"),
)


def told(text: str, folder: Path | None = None) -> str:
    """Return a text without what differs from run to run."""
    if folder is not None:
        text = text.replace(str(folder), "FOLDER")
    for pattern, word in _WORDS:
        text = pattern.sub(word, text)
    return text


def _tried(call: Callable[[], Any]) -> str:
    try:
        return str(call())
    except DpregError as refusal:
        return f"{type(refusal).__name__}: {refusal}"


def _spent(ledger: dpreg.Ledger, folder: Path | None = None) -> str:
    """Charge an account up to each of its caps and past it, and say what it told."""
    steps: list[tuple[str, str, str, str]] = [
        ("1/3", "0", "a mean", "ann"),
        ("0.1", "1e-7", "a fit", "ben"),
        ("2", "0", "beyond what ann has", "ann"),
        ("0.1", "1e-5", "beyond all delta", "ben"),
        ("1", "0", "more", "ben"),
        ("0.9", "0", "beyond the year", "ann"),
        ("0.1", "0", "nobody's", "eve"),
        ("0.1", "0", "of another unit", "ann"),
    ]
    lines = []
    for eps, delta, what, analyst in steps:
        unit = "add-remove, 1 row" if "unit" in what else "replace-one, 1 row"
        cost = dpreg.Budget(Fraction(eps), delta)
        asking = ledger.for_analyst(analyst)
        lines.append(_tried(lambda: asking.check(cost, what, unit)))  # noqa: B023
        lines.append(_tried(lambda: ledger.charge(cost, what, unit, analyst=analyst)))  # noqa: B023
        lines.append(repr(ledger))
    lines += [str(ledger.remaining), json.dumps(ledger.export(), indent=1), str(ledger.verify())]
    lines.append(_tried(lambda: ledger.verify("3:" + "0" * 64)))
    return told("\n".join(lines), folder)


CAPS: dict[str, Any] = {
    "analyst_cap": {"ann": 2, "ben": dpreg.Budget(3, "1e-6")},
    "period_cap": dpreg.Budget(2, "1e-6"),
    "period": "year",
}


def _in_memory() -> str:
    return _spent(dpreg.Ledger(dpreg.Budget(4, "1e-6"), **CAPS))


@contextmanager
def _folder() -> Iterator[Path]:
    """Work in a folder that goes away."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def _in_a_file() -> str:
    with _folder() as folder:
        ledger = dpreg.Ledger(dpreg.Budget(4, "1e-6"), folder / "book.db", **CAPS)
        lines = [_spent(ledger, folder)]
        lines.append(_tried(lambda: dpreg.Ledger(5, folder / "book.db")))
        lines.append(_tried(lambda: dpreg.Ledger.open(folder / "none.db")))
        ledger.close()
        (folder / "copy.db").write_bytes((folder / "book.db").read_bytes())
        copy = dpreg.Ledger.open(folder / "copy.db")
        lines.append(_tried(lambda: copy.charge(dpreg.Budget(0), "a copy", "replace-one, 1 row")))
        lines.append(_tried(lambda: copy.adopt("the other one is gone")))
        copy.close()
        return told("\n".join(lines), folder)


def _composed() -> str:
    """Fifty charges of a tenth are five, exactly; and what calls of all kinds charge."""
    ledger, rows = dpreg.Ledger(dpreg.Budget(100, "1e-3")), drawn(400)
    for _ in range(50):
        ledger.charge(dpreg.Budget("0.1"), "a tenth")
    common: dict[str, Any] = {"schema": SCHEMA, "budget": ledger, "unsafe_seed": 2}
    dpreg.dp_mean("a", rows, eps="0.7", **common)
    dpreg.dp_quantile(["a", "b"], [0.2, 0.5], rows, eps=2, **common)
    dpreg.dp_ols("y ~ a", rows, 3, method="gram", delta="1e-6", **common)
    dpreg.dp_select("y ~ a + b", rows, 3, method="pcls", fit="split", contributions=1, **common)
    lines = [
        f"{entry.number} {entry.budget} {entry.what} | {entry.unit}" for entry in ledger.entries
    ]
    return told("\n".join([*lines, repr(ledger), str(ledger.remaining)]))


COMMANDS = (
    "ledger init book.db --eps 2 --delta 1e-6 --analyst ann=1 --analyst ben=1.5",
    "ledger init book.db --eps 3",
    "mean rows.csv a b --schema schema.json --eps 0.5 --ledger book.db --analyst ann --check",
    "ledger show book.db",
    "mean rows.csv a b --schema schema.json --eps 0.5 --ledger book.db --analyst eve",
    "mean rows.csv a --schema schema.json --eps 1.2 --ledger book.db --analyst ann",
    "ols 'y ~ a + nobody' rows.csv --method gram --schema schema.json --eps 1",
    "select 'y ~ a + b' rows.csv --method pcls --schema nofile.json --eps 1",
    "mean none.csv a --schema schema.json --eps 1",
    "check 'y ~ a + g' rows.csv --schema schema.json --eps 1 --call ols --json",
    "ledger verify book.db",
    "ledger verify book.db --head 7:nothing",
    "show schema.json",
)


def _ended(arguments: list[str]) -> tuple[str, str]:
    """Run the command here, as a shell would, and return what it printed and how it ended."""
    printed = io.StringIO()
    with (
        patch.object(sys, "argv", ["dpreg", *arguments]),
        warnings.catch_warnings(),
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        try:
            main()
        except SystemExit as end:
            return printed.getvalue(), f"ends with {end.code}"


def _commands() -> str:
    """What the command prints and how it ends."""
    with _folder() as folder:
        drawn(200).to_csv("rows.csv", index=False)
        Path("schema.json").write_text(dpreg.Schema(SCHEMA).to_json())
        lines = []
        for command in COMMANDS:
            lines += [f"$ dpreg {command}", *_ended(shlex.split(command))]
        return told("\n".join(lines), folder)


CASES: dict[str, Callable[[], str]] = {
    "ledger in memory": _in_memory,
    "ledger in a file": _in_a_file,
    "ledger composed": _composed,
    "ledger commands": _commands,
}
