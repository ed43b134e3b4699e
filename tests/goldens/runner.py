"""Goldens: what was said by calls whose law is to stay, as hashes in ``goldens.json``.

Before they are hashed, floats are rounded to ten significant digits, and of long lists of numbers
(draws that intervals come from) only means and spreads are kept, to six: the last bits are those
of a machine's linear algebra. The record of a release is left out, as it holds time and versions,
and so is the report's hash of all digits.

``goldens.json`` has a line for each golden: its name, and a hash for each of its parts. A golden
that moves on purpose is written anew in the commit that moves it, which says why.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import html
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from goldens import books, calls, refusals

import dpreg
from dpreg.errors import DpregError, DpregWarning
from dpreg.results.report import report_html

FILE = Path(__file__).parent / "goldens.json"
ROOT = Path(__file__).parents[2]
LONG = 100
"""Lists of more numbers than this are summarised."""

_DIGITS = re.compile(r"-?\d+\.\d{9,}(?:e[-+]\d+)?")
Parts = Mapping[str, str]


def settled(value: Any) -> Any:
    """Return what JSON holds with its floats rounded and its long lists of numbers summarised."""
    if isinstance(value, Mapping):
        return {key: settled(value[key]) for key in sorted(value)}
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return f"{float(value):.10g}"
    if not isinstance(value, list):
        return value
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return [settled(one) for one in value]
    if numbers.size <= LONG or numbers.ndim != 2:
        return [settled(one) for one in value]
    means, spreads = numbers.mean(axis=0).tolist(), numbers.std(axis=0).tolist()
    return {
        "shape": list(numbers.shape),
        "means": [f"{mean:.6g}" for mean in means],
        "spreads": [f"{spread:.6g}" for spread in spreads],
    }


def plain(page: str) -> str:
    """Return the words of an HTML page, a line for each piece, with its long floats rounded."""
    shown = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    words = html.unescape(re.sub(r"<[^>]*>", "\n", shown))
    words = _DIGITS.sub(lambda found: f"{float(found.group()):.10g}", words)
    return "\n".join(line.strip() for line in words.splitlines() if line.strip())


def _released(call: Callable[[], Any]) -> Parts:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", DpregWarning)
        made = call()
    result = dataclasses.replace(made, record=None)
    payload = {**result.to_dict()}
    del payload["dpreg"], payload["record"]
    summary = result.summary(full=True)
    return {
        "numbers": json.dumps(settled(payload), indent=1),
        "told": "\n".join(str(warning.message) for warning in heard),
        "screen": f"{result.summary()}\n{result.summary().as_latex()}",
        "page": f"{summary}\n{result!r}",
        "html": summary.as_html(),
        "latex": summary.as_latex(),
        "report": books.told(plain(report_html(result))),
    }


def _refused(call: refusals.Bad) -> Parts:
    ledger = dpreg.Ledger(dpreg.Budget(40, "0.5"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpregWarning)
        try:
            call(ledger)
        except DpregError as refusal:
            text = f"{type(refusal).__name__}: {refusal}"
        else:
            text = "NOT REFUSED"
    return {"told": text + (" AND CHARGED" if ledger.entries else "")}


def makers() -> dict[str, Callable[[], Parts]]:
    """Return what makes each golden, by name."""
    found: dict[str, Callable[[], Parts]] = {}
    for name, call in calls.CASES.items():
        found[name] = lambda call=call: _released(call)  # type: ignore[misc]
    for name, call in calls.STUDIES.items():
        found[name] = lambda call=call: {"page": str(call())}  # type: ignore[misc]
    for name, book in books.CASES.items():
        found[name] = lambda book=book: {"told": book()}  # type: ignore[misc]
    for name, bad in refusals.CASES.items():
        found[f"refused: {name}"] = lambda bad=bad: _refused(bad)  # type: ignore[misc]
    return found


def hashed(parts: Parts) -> dict[str, str]:
    """Return a short hash for each part."""
    return {part: hashlib.sha256(text.encode()).hexdigest()[:12] for part, text in parts.items()}


def recorded() -> dict[str, dict[str, str]]:
    """Return the goldens as they were written."""
    goldens: dict[str, dict[str, str]] = json.loads(FILE.read_text())
    return goldens


def written(goldens: Mapping[str, Mapping[str, str]]) -> None:
    """Write all goldens."""
    lines = [f"{json.dumps(name)}: {json.dumps(goldens[name])}" for name in sorted(goldens)]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def moved(name: str) -> list[str]:
    """Return the parts of a golden that are not as they were written."""
    before, now = recorded().get(name, {}), hashed(makers()[name]())
    return [part for part in {**before, **now} if before.get(part) != now.get(part)]


def shown(names: Iterable[str]) -> str:
    """Return goldens as text, whole."""
    every = makers()
    return "\n".join(
        f"==== {name}: {part}\n{text}"
        for name in names
        if name in every
        for part, text in every[name]().items()
    )


def commit() -> str:
    """Return the commit that last wrote the goldens; "" outside of a checkout."""
    log = ["git", "log", "-1", "--format=%H", "--", str(FILE)]
    return subprocess.run(log, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def difference(names: list[str]) -> str:
    """Return how goldens differ from those of the commit that last wrote them."""
    archive = ["git", "archive", commit(), "dpreg", "tests"]
    packed = subprocess.run(archive, cwd=ROOT, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as tree:
            tree.extractall(folder, filter="data")
        then = subprocess.run(
            [sys.executable, "-m", "goldens", "--show", *names],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{folder}/tests"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    lines = difflib.unified_diff(
        then.splitlines(), shown(names).splitlines(), commit()[:7], "now", lineterm=""
    )
    return "\n".join(lines)
