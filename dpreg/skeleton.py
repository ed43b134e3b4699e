"""A schema from a table's names and kinds, to fill in, and made-up rows from a schema."""

from __future__ import annotations

import io
import json
import math
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd

from dpreg.cells import Kind, kind_of, number
from dpreg.columns import DATES_MEND, Boolean, Categorical, ColumnType, Numeric
from dpreg.errors import ArgumentError, DataError, did_you_mean

MADE_UP: Final = "made up"
"""The name of the index of made-up rows, and of its column in a file."""

# For each kind: the Python to fill in (none: the column cannot be used), and what to write.
_TEMPLATE: dict[Kind, tuple[str, str]] = {
    "numeric": ("(..., ...)", "numbers: the lowest and the highest legal value"),
    "bool": ("bool", "true or false"),
    "string": ("[..., ...]", "text: every level, the reference first"),
    "category": ("[..., ...]", "labels: every level, the reference first"),
    "object": ("...", "undeclared kind: two bounds, a list of levels, or bool"),
    "datetime": ("", "dates: make numbers of them, (x - pd.Timestamp('2000-01-01')).dt.days"),
    "other": ("", "neither numbers nor labels: cannot be used"),
}


class HasKinds(Protocol):
    """Anything that knows its columns' names and kinds, such as a `dpreg.sources.Source`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""

    def kind(self, name: str, /) -> Kind:
        """Return what the container calls a column."""


@dataclass(frozen=True, slots=True, repr=False)
class Skeleton:
    """A table's column names and kinds, as a schema to fill in. Holds no value of any row.

    For the curator's eyes: where a container inferred kinds from the rows, they may reveal them.
    What is filled in has to be known from elsewhere.

    Attributes
    ----------
    kinds : tuple of (str, str)
        Name and kind of each column, in the table's order.
    """

    kinds: tuple[tuple[str, Kind], ...]

    @classmethod
    def of(cls, data: pd.DataFrame | HasKinds) -> Skeleton:
        """Look at a frame's or source's column names and dtypes, and at no row."""
        if isinstance(data, pd.DataFrame):
            if data.columns.nlevels > 1:
                raise DataError("the table's column labels have several levels: flatten them first")
            if not all(isinstance(name, str) for name in data.columns):
                raise DataError(
                    "the table has column names that are not text, and a schema's names are: "
                    "rename them first, as by `data.columns = data.columns.map(str)`"
                )
            pairs = zip(data.columns, data.dtypes, strict=True)
            kinds = [(str(name), kind_of(d)) for name, d in pairs]
        elif hasattr(data, "names") and hasattr(data, "kind"):
            kinds = [(name, data.kind(name)) for name in data.names]
        else:
            raise ArgumentError("a skeleton is made of a pandas DataFrame or a Source")
        return cls(tuple(kinds))

    def to_python(self) -> str:
        """Lay out a Python mapping; `Schema` refuses each ``...`` until it is replaced."""
        lines = []
        for name, kind in self.kinds:
            blank, advice = _TEMPLATE[kind]
            entry = f"{name!r}: {blank}," if blank else f"# {name!r}:"
            lines.append(f"    {entry}  # {advice}")
        return "\n".join(["schema = {", *lines, "}"])

    def to_toml(self) -> str:
        """Lay out a TOML file; `Schema` refuses the words "fill in" until they are replaced."""
        lines = []
        for name, kind in self.kinds:
            blank, advice = _TEMPLATE[kind]
            key = json.dumps(name).replace(
                "\x7f", "\\u007f"
            )  # JSON's spelling is TOML's, except for DEL
            word = "bool" if kind == "bool" else "fill in"
            entry = f'{key} = "{word}"' if blank else f"# {key}:"
            lines.append(f"{entry}  # {advice}")
        return "\n".join(["[columns]", *lines, ""])

    def __repr__(self) -> str:
        """Show the Python template."""
        return self.to_python()


def contradictions(
    declared: Mapping[str, ColumnType], kinds: Sequence[tuple[str, Kind]]
) -> tuple[str, ...]:
    """Say which declared columns are misspelt, or of a kind whose cells cannot mean that.

    One schema may serve many tables: a column that is absent is named where it is spelt nearly like
    one that nobody declares.

    Parameters
    ----------
    declared : mapping of str to ColumnType
    kinds : sequence of (str, Kind)
        As `Skeleton` has them.
    """
    known = dict(kinds)
    found = []
    for name in declared:
        if name not in known and (near := did_you_mean(name, known.keys() - declared.keys(), "")):
            found.append(f"the table has no column {name!r}{near}")
    for name, kind in kinds:
        if name not in declared:
            continue
        told = _contradiction(declared[name], kind)
        if told:
            found.append(f"column {name!r} is declared {told}")
    return tuple(found)


def _contradiction(declared: ColumnType, kind: Kind) -> str:
    texts = isinstance(declared, Categorical) and isinstance(declared.levels[0], str)
    what = {
        Numeric: "as a number",
        Boolean: "as a truth",
        Categorical: "with levels of text" if texts else "with levels that are numbers",
    }[type(declared)]
    if kind == "datetime":
        return f"{what}, and the table holds dates: {DATES_MEND}"
    if kind == "other":
        return f"{what}, and the table holds neither numbers nor labels"
    if isinstance(declared, Numeric) and kind in ("string", "category"):
        return f"{what}, and the table holds text or labels"
    if texts and kind == "numeric" and not _numbers_spelt(declared):
        return f"{what}, and the table holds numbers"
    return ""


def _numbers_spelt(declared: ColumnType) -> bool:
    """Whether some level of text is spelt like a number."""
    assert isinstance(declared, Categorical)
    return any(math.isfinite(number(level)) for level in declared.levels)


def made_up(
    declared: Mapping[str, ColumnType], n: int, formula: str | None, seed: int | None
) -> pd.DataFrame:
    """Draw rows from declarations alone, each column by itself; see `Schema.sample`."""
    rng = np.random.default_rng(seed)
    used = _mentioned(declared, formula)
    if formula is not None and not used:
        raise ArgumentError("the formula names no column of the schema.")
    columns = {name: _drawn(declared[name], n, rng) for name in used}
    return pd.DataFrame(columns, index=pd.RangeIndex(1, n + 1, name=MADE_UP))


def _mentioned(declared: Mapping[str, ColumnType], formula: str | None) -> list[str]:
    if formula is None:
        return list(declared)
    words = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(formula).readline):
            quoted = token.type == tokenize.STRING
            words.add(token.string.strip("\"'") if quoted else token.string)
    except (tokenize.TokenError, SyntaxError):
        raise ArgumentError("the formula cannot be read.") from None
    return [name for name in declared if name in words]


def _drawn(how: ColumnType, n: int, rng: np.random.Generator) -> Any:
    """Draw cells evenly: whole numbers where both bounds are whole."""
    match how:
        case Numeric(lo, hi) if lo.is_integer() and hi.is_integer() and hi - lo < 2**53:
            return lo + np.floor(rng.random(n) * (hi - lo + 1))
        case Numeric(lo, hi):
            return np.clip(lo + rng.random(n) * (hi - lo), lo, hi)
        case Categorical(levels):
            return pd.array([levels[place] for place in rng.integers(len(levels), size=n)])
    return rng.random(n) < 0.5
