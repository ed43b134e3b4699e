"""The forms in which a column may be declared, read and written.

Tested in `tests/test_schema.py`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

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
from dpreg.errors import SchemaError

__all__ = ["HOW", "Declaration", "declared", "plain", "python"]

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
