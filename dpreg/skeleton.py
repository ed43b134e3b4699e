"""A table's column names and kinds, laid out as a schema to fill in: for the curator's eyes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpreg.cells import Kind, kind_of
from dpreg.errors import ArgumentError, DataError

__all__ = ["Skeleton"]

# For each kind: the Python to fill in (none: the column cannot be used), and what to write.
_TEMPLATE: dict[Kind, tuple[str, str]] = {
    "numeric": ("(..., ...)", "numbers: the lowest and the highest legal value"),
    "bool": ("bool", "true or false"),
    "string": ("[..., ...]", "text: every level, the reference first"),
    "category": ("[..., ...]", "labels: every level, the reference first"),
    "object": ("...", "undeclared kind: two bounds, a list of levels, or bool"),
    "datetime": ("", "dates or times: make numbers of them before use"),
    "other": ("", "neither numbers nor labels: cannot be used"),
}


@dataclass(frozen=True, slots=True, repr=False)
class Skeleton:
    """A table's column names and kinds, as a schema to fill in. Holds no value of any row.

    For the curator's eyes: where a container inferred its kinds from the rows, they tell of them.
    What is filled in has to be known from elsewhere.

    Attributes
    ----------
    kinds : tuple of (str, str)
        Name and kind of each column, in the table's order.
    """

    kinds: tuple[tuple[str, Kind], ...]

    @classmethod
    def of(cls, data: Any) -> Skeleton:
        """Look at a frame's or source's column names and dtypes, and at no row."""
        if isinstance(data, pd.DataFrame):
            if data.columns.nlevels > 1:
                raise DataError("the table's column labels have several levels: flatten them first")
            pairs = zip(data.columns, data.dtypes, strict=True)
            kinds = [(str(name), kind_of(d)) for name, d in pairs if isinstance(name, str)]
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
            )  # JSON's spelling is TOML's, but for DEL
            word = "bool" if kind == "bool" else "fill in"
            entry = f'{key} = "{word}"' if blank else f"# {key}:"
            lines.append(f"{entry}  # {advice}")
        return "\n".join(["[columns]", *lines, ""])

    def __repr__(self) -> str:
        """Show the Python template."""
        return self.to_python()
