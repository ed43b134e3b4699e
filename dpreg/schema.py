"""What is public about the columns: bounds, levels, kinds. No row is ever read here.

A schema says, before any row is looked at, what values a column may take. Everything later that
must not depend on rows (the design's columns, the scaling, the sensitivity) rests on it.

A schema from a table's names and kinds, to fill in, and made-up rows from a schema.
"""

from __future__ import annotations

import io
import json
import math
import os
import tokenize
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd

from dpreg.cells import Kind, kind_of, number
from dpreg.columns import (
    DATES_MEND,
    HOW,
    Boolean,
    Categorical,
    ColumnType,
    Declaration,
    Numeric,
    declared,
    plain,
    python,
)
from dpreg.errors import ArgumentError, DataError, SchemaError, did_you_mean
from dpreg.paths import named, read_text

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
            # JSON's spelling is TOML's, except for DEL.
            key = json.dumps(name).replace("\x7f", "\\u007f")
            word = "bool" if kind == "bool" else "fill in"
            entry = f'{key} = "{word}"' if blank else f"# {key}:"
            lines.append(f"{entry}  # {advice}")
        return "\n".join(["[columns]", *lines, ""])

    def __repr__(self) -> str:
        """Show the Python template."""
        return self.to_python()


def misspelt(declared: Mapping[str, ColumnType], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield declared names that a table lacks and that are spelt nearly like one nobody declares.

    Each comes with the sentence that says so.
    """
    undeclared = [name for name in names if name not in declared]
    for name in declared:
        if name not in names and (near := did_you_mean(name, undeclared, "")):
            yield name, f"the table has no column {name!r}{near}"


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
    found = [told for _, told in misspelt(declared, [name for name, _ in kinds])]
    for name, kind in kinds:
        if name in declared and (told := _contradiction(declared[name], kind)):
            found.append(f"column {name!r} is declared {told}")
    return tuple(found)


def _contradiction(declared: ColumnType, kind: Kind) -> str:
    levels = declared.levels if isinstance(declared, Categorical) else ()
    texts = any(isinstance(level, str) for level in levels)
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
    if texts and kind == "numeric" and not any(math.isfinite(number(one)) for one in levels):
        return f"{what}, and the table holds numbers"
    return ""


def _mentioned(declared: Mapping[str, ColumnType], formula: str) -> list[str]:
    """Return the declared columns that a formula names."""
    words = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(formula).readline):
            quoted = token.type == tokenize.STRING
            words.add(token.string.strip("\"'") if quoted else token.string)
    except (tokenize.TokenError, SyntaxError):
        raise ArgumentError("the formula cannot be read.") from None
    used = [name for name in declared if name in words]
    if not used:
        raise ArgumentError("the formula names no column of the schema.")
    return used


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
        Names the column and says how to correct its declaration.

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

    def __init__(self, columns: Mapping[str, Declaration] | None = None) -> None:
        if not isinstance(columns, Mapping | None):
            raise SchemaError("a schema is a mapping of column names to declarations: " + HOW)
        read = {}
        for name, spec in (columns or {}).items():
            if not isinstance(name, str) or not name.strip():
                raise SchemaError(
                    "a column's name must be text and not blank: correct the schema's keys"
                )
            try:
                read[name] = declared(spec)
            except SchemaError as err:
                raise SchemaError(f"column {name!r}: {err}") from None
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
        if obj is None or isinstance(obj, Mapping):
            return cls(obj)
        if isinstance(obj, str | os.PathLike):
            return cls.from_file(obj)
        raise SchemaError("schema must be a mapping, a Schema, or the path of a TOML or JSON file")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema from a file whose name ends in ``.toml`` or ``.json``."""
        readers = {".toml": cls.from_toml, ".json": cls.from_json}
        reader = readers.get(Path(path).suffix.lower())
        if reader is None:
            raise SchemaError(f"schema file {named(path)}: the name must end in .toml or .json")
        return reader(read_text(path, SchemaError))

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Read what `to_json` wrote, or any JSON of the form given in the class's notes."""
        return cls._parsed("JSON", partial(json.loads, object_pairs_hook=_without_repeats), text)

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read TOML of the form given in the class's notes."""
        return cls._parsed("TOML", tomllib.loads, text)

    @classmethod
    def from_dict(cls, columns: Mapping[str, Declaration]) -> Schema:
        """Read what `to_dict` wrote; the same as calling the class."""
        return cls(columns)

    @classmethod
    def _parsed(cls, kind: str, loads: Callable[[str], Any], text: str) -> Schema:
        try:
            content = loads(text)
        except (json.JSONDecodeError, tomllib.TOMLDecodeError, RecursionError) as err:
            raise SchemaError(f"the schema is not valid {kind}: {err}") from None
        if not isinstance(content, dict) or set(content) != {"columns"}:
            raise SchemaError('a schema file holds one key, "columns", and the columns under it')
        return cls(content["columns"])

    @staticmethod
    def skeleton(data: pd.DataFrame | HasKinds) -> Skeleton:
        """Names and kinds of a table's columns as a template to fill in, with no value of any row.

        For the curator's eyes: a container may have inferred its kinds from the rows.

        Parameters
        ----------
        data : pandas.DataFrame, or any `dpreg.sources.Source`
            Only column names and dtypes are looked at. A category dtype's categories are values:
            they are not shown.

        Returns
        -------
        Skeleton
            Prints as Python; ``print(skeleton.to_toml())`` is the same as a TOML file.
        """
        if isinstance(data, pd.DataFrame):
            if data.columns.nlevels > 1:
                raise DataError("the table's column labels have several levels: flatten them first")
            if not all(isinstance(name, str) for name in data.columns):
                raise DataError(
                    "the table has column names that are not text, and a schema's names are: "
                    "rename them first, as by `data.columns = data.columns.map(str)`"
                )
            pairs = zip(data.columns, data.dtypes, strict=True)
            return Skeleton(tuple((str(name), kind_of(dtype)) for name, dtype in pairs))
        if hasattr(data, "names") and hasattr(data, "kind"):
            return Skeleton(tuple((name, data.kind(name)) for name in data.names))
        raise ArgumentError("a skeleton is made of a pandas DataFrame or a Source")

    def doubts(self, data: pd.DataFrame | HasKinds) -> tuple[str, ...]:
        """Say where a table's column kinds contradict the schema; looks at no row.

        For the curator's eyes: a container may have inferred its kinds from the rows, so that they
        are not public. That is why no call of dpreg warns of them by itself.

        Parameters
        ----------
        data : pandas.DataFrame, or any `dpreg.sources.Source`

        Returns
        -------
        tuple of str
            A sentence for each declared column whose kind cannot be meant; empty if there is none.
        """
        return contradictions(self, self.skeleton(data).kinds)

    def sample(
        self, n: int, *, formula: str | None = None, seed: int | None = None
    ) -> pd.DataFrame:
        """Make rows up, for writing and trying code before the rows may be touched.

        Parameters
        ----------
        n : int
            How many.
        formula : str, optional
            Only the declared columns that it names; None: all.
        seed : int, optional
            Makes the rows the same again.

        Returns
        -------
        pandas.DataFrame
            Its index is named "made up". Each cell is drawn evenly from what its column may hold,
            without regard to any other: no mean, share or coefficient of such rows means anything.
            Numbers are whole where both bounds are.

        Examples
        --------
        >>> schema = Schema({"price": (105, 905), "county": ["ala", "cc"]})
        >>> schema.sample(3, seed=1).index.name
        'made up'
        """
        for name, value, least in (("n", n, 1), ("seed", seed, 0)):
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            if not whole and not (name == "seed" and value is None):
                raise ArgumentError(f"{name} must be an integer of at least {least}.")
        rng = np.random.default_rng(seed)
        used = self if formula is None else _mentioned(self, formula)
        columns = {name: _drawn(self[name], n, rng) for name in used}
        return pd.DataFrame(columns, index=pd.RangeIndex(1, n + 1, name=MADE_UP))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts and words that `Schema` reads back; fit for JSON."""
        return {name: plain(spec) for name, spec in self.items()}

    def to_json(self, *, indent: int | None = 2) -> str:
        """Write the schema as the text of a JSON file."""
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

    def __hash__(self) -> int:
        """Agree with equality, which disregards the order of columns."""
        return hash(frozenset(self._columns.items()))

    def __repr__(self) -> str:
        """Show a call that makes the same schema."""
        if not self:
            return "Schema({})"
        lines = (f"    {name!r}: {python(spec)},\n" for name, spec in self.items())
        return "Schema({\n" + "".join(lines) + "})"

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a schema is frozen."""
        raise AttributeError("a Schema is frozen: make a new one")

    def __delattr__(self, name: str) -> None:
        """Refuse: a schema is frozen."""
        raise AttributeError("a Schema is frozen: make a new one")

    def __reduce__(self) -> tuple[type[Schema], tuple[dict[str, Any]]]:
        """Pickle as the declarations."""
        return Schema, (dict(self._columns),)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a JSON object that declares a name twice; json keeps the last in silence."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise SchemaError("the schema's JSON holds a name twice: declare each column once")
    return content
