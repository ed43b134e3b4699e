"""What is public about the columns: bounds, levels, kinds. No row is ever read here.

A schema says, before any row is looked at, what values a column may take. Everything later that
must not depend on rows (the design's columns, the scaling, the sensitivity) rests on it.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dpreg.cells import number, number_text
from dpreg.columns import (
    DATES,
    DATES_MEND,
    Boolean,
    Categorical,
    ColumnType,
    Numeric,
    is_list,
    is_number,
)
from dpreg.errors import ArgumentError, SchemaError
from dpreg.paths import named, reason
from dpreg.skeleton import HasKinds, Skeleton, contradictions, made_up

if TYPE_CHECKING:
    import pandas as pd

Declaration: TypeAlias = ColumnType | type[bool] | str | Sequence[object] | Mapping[str, object]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")

HOW: Final = (
    'write (lowest, highest) for numbers, ["level", ...] for text, '
    '{"levels": [1, 2, 3]} for numbers that are labels, or bool'
)


def declared(name: str, spec: object) -> Numeric | Categorical | Boolean:
    """Return a column's declaration, from any of the forms that `Schema` takes."""
    try:
        return _parse(spec)
    except SchemaError as err:
        raise SchemaError(f"column {name!r}: {err}") from None


def _parse(spec: Any) -> Numeric | Categorical | Boolean:
    if isinstance(spec, Numeric | Categorical | Boolean):
        return spec
    if spec is bool or (isinstance(spec, str) and spec in ("bool", "boolean")):
        return Boolean()
    if isinstance(spec, Mapping):
        if set(spec) == {"levels"}:
            return Categorical(spec["levels"])
        if set(spec) == {"bounds"} and is_list(spec["bounds"]) and len(spec["bounds"]) == 2:
            return Numeric(*spec["bounds"])
        raise SchemaError("a table holds either levels or two bounds: " + HOW)
    blank = spec is ... or (isinstance(spec, str) and spec == "fill in")
    if blank or (is_list(spec) and any(value is ... for value in spec)):
        raise SchemaError("not filled in yet: " + HOW)
    if isinstance(spec, str):
        raise SchemaError(f"unknown kind {spec[:40]!r}: {HOW}")
    if not is_list(spec):
        # The type alone: someone may hand over the rows themselves.
        raise SchemaError(f"a value of type {type(spec).__name__} declares nothing: {HOW}")
    if len(spec) == 2 and all(is_number(v) for v in spec):
        return Numeric(*spec)
    if spec and all(is_number(v) for v in spec):
        raise SchemaError("numbers in a list are bounds, of which there are two: " + HOW)
    if len(spec) == 2:
        _check_pair(spec)
    return Categorical(spec)


def _check_pair(pair: Sequence[Any]) -> None:
    """Refuse two items that were meant as bounds and would be taken for levels."""
    if any(value is None for value in pair) and any(is_number(value) for value in pair):
        Numeric(*pair)  # says what is wrong with None
    if any(isinstance(value, DATES) for value in pair):
        raise SchemaError(f"bounds cannot be dates: {DATES_MEND}")
    if not all(isinstance(value, str) for value in pair):
        return
    if all(math.isfinite(number(value)) for value in pair):
        raise SchemaError(
            f"two numbers in quotes: write ({pair[0]}, {pair[1]}) if they are bounds, or "
            f'{{"levels": [{pair[0]!r}, {pair[1]!r}]}} if they are labels'
        )
    if all(_DATE.fullmatch(value.strip()) for value in pair):
        raise SchemaError(
            f"two dates: {DATES_MEND}; or write "
            f'{{"levels": [{pair[0]!r}, {pair[1]!r}]}} if they are labels'
        )


def plain(spec: Numeric | Categorical | Boolean) -> Any:
    """Spell a declaration for JSON, so that `_parse` makes the same of it."""
    match spec:
        case Numeric(lo, hi):
            return [json.loads(number_text(lo)), json.loads(number_text(hi))]
        case Categorical(levels):
            plain = isinstance(levels[0], str) and not _looks_like_bounds(levels)
            return list(levels) if plain else {"levels": list(levels)}
        case Boolean():
            return "bool"


def _looks_like_bounds(levels: Sequence[Any]) -> bool:
    """Whether a list of levels would be refused as bounds that were typed as text."""
    try:
        _check_pair(levels) if len(levels) == 2 else None
    except SchemaError:
        return True
    return False


def python(spec: Numeric | Categorical | Boolean) -> str:
    """Spell a declaration for Python, so that `_parse` makes the same of it."""
    match spec:
        case Numeric(lo, hi):
            return f"({number_text(lo)}, {number_text(hi)})"
        case Categorical():
            return repr(plain(spec))
        case Boolean():
            return "bool"


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
        if columns is None:
            columns = {}
        if not isinstance(columns, Mapping):
            raise SchemaError("a schema is a mapping of column names to declarations: " + HOW)
        read = {_name(name): declared(name, spec) for name, spec in columns.items()}
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
            raise SchemaError(f"schema file {named(path)}: the name must end in .toml or .json")
        why = ""
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as err:
            coded = isinstance(err, UnicodeDecodeError)
            why = "is not UTF-8 text" if coded else f"cannot be read: {reason(err)}"
        if why:  # raised here: the system's own error quotes the path
            raise SchemaError(f"schema file {named(path)} {why}")
        return reader(text)

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
    def from_dict(cls, columns: Mapping[str, Declaration]) -> Schema:
        """Read what `to_dict` wrote; the same as calling the class."""
        return cls(columns)

    @classmethod
    def _from_file_content(cls, content: object) -> Schema:
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
        return Skeleton.of(data)

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
        return contradictions(self, Skeleton.of(data).kinds)

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
        return made_up(self, n, formula, seed)

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


def _name(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise SchemaError("a column's name must be text and not blank: correct the schema's keys")
    return name


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a JSON object that declares a name twice; json keeps the last in silence."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise SchemaError("the schema's JSON holds a name twice: declare each column once")
    return content
