"""Mechanisms made constant: what they release has nothing to do with the rows.

A number that noise is added to is swallowed (`Swallowing`), a choice falls on a fixed candidate, a
tree draws a fixed model, and coins fall in turn. With these in place every released field, view,
warning and error must be the same for any two tables of the same public facts: whatever differs
came to be known without a mechanism.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.privacy.budget import Budget
from dpreg.privacy.mechanisms import additive, choice, coins, wishart
from dpreg.privacy.mechanisms import floors as l2_norm
from dpreg.selection.tree import search as sampler

mpl.use("Agg")


class Swallowing:
    """Noise that leaves nothing of the number to which it is added."""

    __array_ufunc__ = None

    def __init__(self, value: int) -> None:
        self.value = value

    @property
    def __class__(self) -> type:  # noise is an integer
        return int

    def __add__(self, exact: Any) -> int:
        return self.value

    __radd__ = __add__

    def __rmul__(self, times: int) -> int:
        """A multiple of noise, to which nothing was added: a number like any other."""
        return times * self.value


def _noise(size: int, scale: Any) -> list[Any]:
    """Numbers of the size of the noise, all different, large where a count may be meant."""
    return [Swallowing(5_000 + int(float(scale) * math.sin(j + 1.0))) for j in range(size)]


def constant(patch: pytest.MonkeyPatch) -> None:
    """Put the constant mechanisms in the place of dpreg's own."""

    def everywhere(honest: Any, instead: Any) -> None:
        for module in [m for name, m in sys.modules.items() if name.startswith("dpreg")]:
            for name, value in list(vars(module).items()):
                if value is honest:
                    patch.setattr(module, name, instead)

    for honest in (additive.gaussian_noise, additive.laplace_noise):
        everywhere(honest, lambda size, scale, rng=None: _noise(size, scale))

    def wisharts(scales: Any, **_: Any) -> Any:
        size = len(scales)
        return tuple(
            tuple(Swallowing(2**60 * (i == j) + 2**40 * (i + j)) for j in range(size))
            for i in range(size)
        )

    everywhere(wishart.wishart_noise, wisharts)
    everywhere(l2_norm.l2_norm_noise, lambda size, scale, rng=None: _noise(size, scale))
    everywhere(choice.choose, lambda scores, **_: len(scores) // 2)
    patch.setattr(sampler.Tree, "draw", lambda *args, **options: SimpleNamespace(units=(0,)))
    patch.setattr(
        coins.Coins,
        "labels",
        lambda self, start, rows: (start + np.arange(rows)) % self.groups,
    )
    everywhere(
        coins.assign_blocks, lambda rows, blocks, rng=None: np.arange(rows, dtype=np.int64) % blocks
    )


def tables(numbers_only: bool = False) -> list[pd.DataFrame]:
    """Five tables with the same columns and number of rows, and nothing else in common."""
    rng = np.random.default_rng(3)
    rows = 400
    names = ("a", "b", "c", "y", "z")

    def made(cells: Any, levels: Any, owners: int) -> pd.DataFrame:
        frame = pd.DataFrame({name: cells(name) for name in names})
        frame.insert(3, "g", levels)
        return frame.assign(who=rng.integers(0, owners, rows))

    odd: list[Any] = [None, "word", np.inf, b"\xff", 2**70, True, 1 + 2j, [1], 0.5]
    strange = pd.Series([odd[j % len(odd)] for j in range(rows)], dtype=object)
    plain = made(lambda name: rng.normal(size=rows), rng.choice(["u", "v", "w"], rows), 200)
    fitted = plain.assign(y=2 * plain["a"] - plain["b"], z=3 * plain["c"])
    return [
        plain,
        fitted,
        made(lambda name: np.zeros(rows), ["u"] * rows, 1),
        made(lambda name: np.full(rows, np.nan), ["w"] * rows, 10**6),
        made(lambda name: rng.choice([-1e9, 1e9], rows), ["v"] * rows, 9)
        if numbers_only
        else made(lambda name: strange, strange, 100),
    ]


def views(call: Any, data: Any) -> dict[str, str]:
    """Return every view of one call's outcome, byte for byte."""
    ledger = dpreg.Ledger(Budget(10**6, "0.5"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = call(data, ledger)
        except Exception as raised:
            result = None
            error = f"{type(raised).__name__}: {raised}"
        else:
            error = ""
    seen = {
        "error": error,
        "warnings": "\n".join(f"{one.category.__name__}: {one.message}" for one in told),
        "ledger": str([(entry.what, str(entry.budget), entry.unit) for entry in ledger.entries]),
    }
    if result is None:
        return seen
    written = result.to_dict()
    seen |= {f"field {name}": json.dumps(value, default=str) for name, value in written.items()}
    seen |= {
        "json": result.to_json(),
        "pickle": pickle.dumps(result).decode("latin-1"),
        "repr": repr(result),
        "text": str(result),
        "html": result._repr_html_(),
        "latex": result._repr_latex_(),
        "budget": result.budget.to_csv(),
    }
    for name in ("conf_int", "plot"):
        if hasattr(type(result), name):
            seen[name] = _drawn(getattr(result, name))
    return {name: _timeless(text, result) for name, text in seen.items()}


def _timeless(text: str, result: Any) -> str:
    """Leave out the time of the call, and the ledger's random name with the hash of its chain."""
    record = result.record
    own = [] if record is None else [record.when]
    if record is not None and record.ledger is not None:
        own += [record.ledger.ledger, record.ledger.head]
    for told in filter(None, own):
        text = text.replace(str(told), "...")
    return text


def _drawn(view: Any) -> str:
    """Return a table's or a plot's data."""
    import matplotlib.pyplot as plt

    try:
        shown = view()
    except dpreg.errors.DpregError as refused:
        return f"{type(refused).__name__}: {refused}"
    if isinstance(shown, pd.DataFrame):
        return str(shown.to_csv())
    figure, held = shown.figure, io.StringIO()
    for axes in figure.axes:
        for line in axes.get_lines():
            held.write(str(np.asarray(line.get_xydata()).tolist()))
        for patch in axes.patches:
            held.write(str(patch.get_path().vertices.tolist()))
        for group in axes.collections:
            held.write(str(np.asarray(group.get_offsets()).tolist()))
        held.write(str([text.get_text() for text in axes.get_xticklabels() + axes.texts]))
    plt.close(figure)
    return held.getvalue()
