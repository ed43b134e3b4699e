"""What is public about the columns: bounds, levels, kinds. No row is ever read here.

A schema says, before any row is looked at, what values a column may take. Everything later that
must not depend on rows (the design's columns, the scaling, the sensitivity) rests on it.
"""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


from dpreg.errors import SchemaError

__all__ = ["Boolean", "Categorical", "ColumnType", "Numeric", "Schema", "Skeleton", "Unbounded"]

_HOW = (
    'write (lowest, highest) for numbers, ["level", ...] for text, '
    '{"levels": [1, 2, 3]} for numbers that are labels, or bool'
)


@dataclass(frozen=True, slots=True)
class Numeric:
    """A column of numbers that lie between two public bounds.

    Parameters
    ----------
    lo, hi : float
        Lowest and highest legal value, both finite, ``lo < hi``. Cells outside are clipped to
        them by the design; they are no error.

    Raises
    ------
    SchemaError
        If a bound is not a finite number, or the interval has no width in float64.
    """

    lo: float
    hi: float

    def __post_init__(self) -> None:
        """Turn the bounds into floats and refuse an interval that cannot be scaled."""
        lo, hi = _bound(self.lo), _bound(self.hi)
        if not lo < hi:
            raise SchemaError("the lower bound must be below the upper bound: mend the two bounds")
        if not math.isfinite(hi - lo):
            raise SchemaError("the bounds lie too far apart for float64: narrow them")
        if not lo < lo + (hi - lo) / 2 < hi:
            raise SchemaError("the bounds have no width in float64: set them further apart")
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)

    def __repr__(self) -> str:
        """Show the bounds as a reader would type them."""
        return f"Numeric({_number_text(self.lo)}, {_number_text(self.hi)})"


@dataclass(frozen=True, slots=True)
class Categorical:
    """A column of labels, each one of a public list of levels.

    Parameters
    ----------
    levels : sequence of str, or sequence of int or float
        At least two, all different, all text or all numbers. The order is kept and the first is
        the reference. Whole floats are kept as integers: 1.0 and 1 are the same level.

    Raises
    ------
    SchemaError
        If there are fewer than two levels, two are the same, or text and numbers are mixed.
    """

    levels: tuple[str, ...] | tuple[float, ...]

    def __post_init__(self) -> None:
        """Turn the levels into a tuple of plain values and refuse those that cannot be told apart."""
        object.__setattr__(self, "levels", _levels(self.levels))

    def __repr__(self) -> str:
        """Show the levels in their order."""
        return f"Categorical([{', '.join(map(repr, self.levels))}])"


@dataclass(frozen=True, slots=True)
class Boolean:
    """A column of truths: false is 0 and true is 1."""


@dataclass(frozen=True, slots=True)
class Unbounded:
    """A column of numbers that the schema leaves undeclared; its bounds are estimated later.

    It only says how a column is to be read (see `dpreg.sources`): a `Schema` has no such entry.
    """


ColumnType = Numeric | Categorical | Boolean | Unbounded
"""How a raw column is to be read."""


class Schema(Mapping[str, Numeric | Categorical | Boolean]):
    """The public facts about the columns of a table: a frozen, hashable mapping.

    Parameters
    ----------
    columns : mapping of str to a declaration, optional
        A declaration is one of

        - ``(lo, hi)``, a tuple or list of exactly two numbers: bounds, `Numeric`;
        - ``["ala", "cc", ...]``, a list or tuple of text: levels, `Categorical`;
        - ``{"levels": [...]}``: always levels, so also numbers that are labels;
        - ``{"bounds": [lo, hi]}``: always bounds;
        - ``bool``, or the word ``"bool"``: `Boolean`;
        - a `Numeric`, `Categorical` or `Boolean`.

    Raises
    ------
    SchemaError
        Names the column and says how to mend its declaration.

    Notes
    -----
    A file holds the same declarations under the one key ``columns``. As TOML ::

        [columns]
        price = [105, 905]
        county = ["ala", "cc"]
        rooms = {levels = [1, 2, 3]}
        idp = "bool"

    and as JSON ``{"columns": {"price": [105, 905], "county": ["ala", "cc"], ...}}``.

    Two schemas are equal when they declare the same columns alike, in whatever order; the order of
    a column's levels counts.

    Examples
    --------
    >>> Schema({"price": (105, 905), "county": ["ala", "cc"], "idp": bool})
    Schema({
        'price': (105, 905),
        'county': ['ala', 'cc'],
        'idp': bool,
    })
    """

    __slots__ = ("_columns",)
    _columns: dict[str, Numeric | Categorical | Boolean]

    def __init__(self, columns: Mapping[str, Any] | None = None) -> None:
        if columns is None:
            columns = {}
        if not isinstance(columns, Mapping):
            raise SchemaError("a schema is a mapping of column names to declarations: " + _HOW)
        read = {_name(name): _declaration(name, spec) for name, spec in columns.items()}
        object.__setattr__(self, "_columns", read)

    @classmethod
    def from_any(cls, obj: object) -> Schema:
        """Make a schema from a `Schema`, a mapping, a path to a file, or None (declares nothing).

        Parameters
        ----------
        obj : Schema, mapping, os.PathLike, str ending in ``.toml`` or ``.json``, or None

        Returns
        -------
        Schema
        """
        if isinstance(obj, Schema):
            return obj
        if obj is None:
            return cls()
        if isinstance(obj, Mapping):
            return cls(obj)
        if isinstance(obj, str | os.PathLike):
            return cls.from_file(obj)
        raise SchemaError("schema must be a mapping, a Schema, or the path of a TOML or JSON file")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema from a file whose name ends in ``.toml`` or ``.json``."""
        readers = {".toml": cls.from_toml, ".json": cls.from_json}
        file = Path(path)
        reader = readers.get(file.suffix.lower())
        if reader is None:
            raise SchemaError(f"schema file {str(file)!r}: the name must end in .toml or .json")
        try:
            return reader(file.read_text(encoding="utf-8"))
        except OSError as err:
            raise SchemaError(f"schema file {str(file)!r} cannot be read: {err.strerror}") from None
        except UnicodeDecodeError:
            raise SchemaError(f"schema file {str(file)!r} is not UTF-8 text") from None

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Read what `to_json` wrote, or any JSON of the form given in the class's notes."""
        try:
            content = json.loads(text, object_pairs_hook=_without_repeats)
        except (json.JSONDecodeError, RecursionError) as err:
            raise SchemaError(f"the schema is not valid JSON: {err}") from None
        return cls._from_file_content(content)

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read TOML of the form given in the class's notes."""
        try:
            content = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as err:
            raise SchemaError(f"the schema is not valid TOML: {err}") from None
        return cls._from_file_content(content)

    @classmethod
    def from_dict(cls, columns: Mapping[str, Any]) -> Schema:
        """Read what `to_dict` wrote; the same as calling the class."""
        return cls(columns)

    @classmethod
    def _from_file_content(cls, content: object) -> Schema:
        if not isinstance(content, dict) or set(content) != {"columns"}:
            raise SchemaError('a schema file holds one key, "columns", and the columns under it')
        return cls(content["columns"])

    @staticmethod
    def skeleton(data: Any) -> Skeleton:
        """Names and kinds of a table's columns as a template to fill in, with no value of any row.

        Parameters
        ----------
        data : pandas.DataFrame, or any `dpreg.sources.Source`
            Only column names and dtypes are looked at. A category dtype's categories are values:
            they are not shown.

        Returns
        -------
        Skeleton
            Prints as Python; ``.to_toml()`` is the same as a TOML file.
        """
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts and words that `Schema` reads back; fit for JSON."""
        raise NotImplementedError

    def to_json(self, *, indent: int | None = 2) -> str:
        """The schema as the text of a JSON file."""
        return json.dumps({"columns": self.to_dict()}, indent=indent, ensure_ascii=False)

    def __getitem__(self, name: str) -> Numeric | Categorical | Boolean:
        """Look up one column's declaration; KeyError where it is undeclared."""
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the declared names in the order given."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Count the declared columns."""
        return len(self._columns)


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A table's column names and public kinds, as a schema to fill in. Holds no value of any row.

    Attributes
    ----------
    kinds : tuple of (str, str)
        Name and kind of each column, in the table's order.
    """

    kinds: tuple[tuple[str, str], ...]


def _bound(value: Any) -> float:
    return float(value)


def _number_text(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _levels(levels: Any) -> Any:
    return tuple(levels)


def _name(name: object) -> str:
    return str(name)


def _declaration(name: object, spec: object) -> Any:
    raise NotImplementedError


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(pairs)
