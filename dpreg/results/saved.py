"""Results as JSON and back, and their fields as plain, immutable values: all by the fields' types.

A new field needs no line here. Reading runs no code from the file and accepts nothing but what
writing produces: anything else raises `Unreadable`, which collects the path of the field on its way
up, and becomes an ArgumentError that names it. Exact numbers are strings ("0.1", "1/3"), so that
they stay exact; floats keep every bit.

Tested in `tests/results/test_serialize.py`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from functools import cache, partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError, DpregError
from dpreg.privacy.budget import BudgetTable, Spend, decimal_string, exact
from dpreg.schema import Schema

if TYPE_CHECKING:
    from dpreg.results.base import Released

Vector = Annotated[Floats, 1]
Matrix = Annotated[Floats, 2]
"""Arrays, with the number of their dimensions."""
Huge = Annotated[int, "as text"]
"""An integer that may be too large for a float."""
Declared = Annotated[Mapping[str, Any], "a schema"]
"""A schema as `Schema.to_dict` writes it."""

_LONGEST: Final = 4000  # characters of an exact number; Python reads no longer integers
_NOT_NUMBERS: Final = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf}
_EXPECTED: Final[Mapping[Any, str]] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
    dict: "an object",
}
_REFUSED: Final[Mapping[Any, str]] = {Fraction: "an exact number", Declared: "a schema"}
"""What a value should have been that was of the right kind, and not taken."""
VERSION: Final = "0.2"
"""The version of the format that is written; `_OLDER` are read as well."""
_OLDER: Final = ("0.1",)
HEAD: Final = ("dpreg", "kind", "stamp", "privacy")
"""What stands before the fields: "stamp" and "privacy" are for readers that are not dpreg, and
are made anew on loading."""


class Unreadable(Exception):
    """Says what a field should be; `path` is where it stands, innermost name first."""

    def __init__(self, expected: str, *path: str) -> None:
        super().__init__(expected)
        self.path = [*path]


class Settled:
    """The part of frozen dataclasses that makes their fields plain and immutable, by type."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Settle the fields, and check that they fit together."""
        for name, hint in fields_of(type(self)).items():
            held = _mapped(hint, getattr(self, name), partial(_settled, name=name))
            object.__setattr__(self, name, held)
        for wrong, message in self._faults():
            if wrong:
                raise ArgumentError(message)

    def _faults(self) -> Iterable[tuple[bool, str]]:
        """Give what would keep the fields from fitting together: whether it is so, and its words.

        They are asked in turn: what comes later may rest on what came before.
        """
        return ()


def _fields_of(kind: type[Any]) -> Mapping[str, Any]:
    """Return the type of each field of a dataclass, in their order.

    These are str, bool, int, float, Fraction, those above, tuples of one type, mappings of str,
    dataclasses, and ``X | None`` of these.
    """
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


fields_of: Final[Callable[[Any], Mapping[str, Any]]] = cache(_fields_of)


def _mapped(hint: Any, value: Any, do: Callable[[Any, Any], Any]) -> Any:
    """Do something to each value that a field of a type holds, and to its lists and mappings."""
    origin, inside = get_origin(hint), get_args(hint)
    if type(None) in inside:
        others = [one for one in inside if one is not type(None)]
        return None if value is None else _mapped(reduce(or_, others), value, do)
    if hint is BudgetTable:
        return BudgetTable(_mapped(tuple[Spend, ...], value, do))
    if origin is tuple:
        return tuple(_mapped(inside[0], item, do) for item in do(list, value))
    if origin is Mapping and inside[1] is not Any:
        each = partial(_mapped, inside[1], do=do)
        return {str(name): _named(str(name), each, one) for name, one in do(dict, value).items()}
    return do(hint, value)


def _settled(hint: Any, value: Any, name: str) -> Any:
    """Return a value as a result holds it."""
    if hint in (Vector, Matrix):
        return read_only(value, get_args(hint)[1], name)
    if hint is Fraction:
        return exact(value, name)
    if hint == Declared:
        return written(Schema.from_any(value).to_dict())
    if hint == Fraction | float and isinstance(value, int):
        return Fraction(value)
    return float(value) if hint is float else written(value) if hint == Mapping[str, Any] else value


def read_only(values: ArrayLike, ndim: int, name: str) -> Floats:
    """Return float64 numbers that refuse writes, or raise where the dimension is wrong.

    A copy, unless the array refuses writes already and owns its numbers.
    """
    kept = isinstance(values, np.ndarray) and not values.flags.writeable and values.flags.owndata
    array = np.array(values, dtype=np.float64, copy=None if kept else True)
    if array.shape == (0,):
        array = array.reshape((0,) * ndim)  # of no columns: JSON does not tell [] of two dimensions
    if array.ndim != ndim:
        raise ArgumentError(f"{name} must have {ndim} dimension(s), got {array.ndim}")
    array.setflags(write=False)
    return array


# Writing, by what a value is.


def written(value: Any) -> Any:
    """Return a value in JSON's own types."""
    match value:
        case Fraction():
            return decimal_string(value)
        case np.generic() | np.ndarray():
            return written(value.tolist())
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"
        case Mapping():
            return {str(name): written(item) for name, item in value.items()}
        case list() | tuple() | BudgetTable():
            return [written(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
    return value.to_dict() if hasattr(value, "to_dict") else fields_written(value)


def fields_written(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON, under their keys.

    Its `saved_as` has keys of fields whose name is not their key, and its `sparing` names those
    that are written only where they are true.
    """
    keys, sparing = getattr(value, "saved_as", {}), getattr(value, "sparing", ())
    told = {name: (hint, getattr(value, name)) for name, hint in fields_of(type(value)).items()}
    return {
        keys.get(name, name): str(held) if hint == Huge else written(held)
        for name, (hint, held) in told.items()
        if name not in sparing or held
    }


# Reading, by what a field should be.


def _read(hint: Any, value: Any) -> Any:
    """Return a value of a type, or raise Unreadable."""
    if hint in _EXPECTED:
        if type(value) is not hint:
            raise Unreadable(_EXPECTED[hint])
        return value
    if hasattr(hint, "from_payload"):
        return hint.from_payload(value)
    try:
        if reader := _READERS.get(hint):
            return reader(value)
        return hint(**_fields_read(value, hint))
    except DpregError as problem:
        raise Unreadable(f"{_REFUSED.get(hint, 'right')} ({problem})") from None


def _read_exact(value: Any) -> Fraction:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise Unreadable('an exact number as text, such as "0.1" or "1/3"')
    return exact(value, "the number")


def _read_float(value: Any) -> float:
    if isinstance(value, str) and value in _NOT_NUMBERS:
        return _NOT_NUMBERS[value]
    if type(value) not in (int, float):
        raise Unreadable('a number, or "NaN", "Inf" or "-Inf"')
    try:
        return float(value)
    except OverflowError:
        raise Unreadable("a number that a float can hold") from None


def _read_number(value: Any) -> Any:
    exactly = isinstance(value, str) and value not in _NOT_NUMBERS
    return _read(Fraction if exactly else float, value)


def _read_huge(value: Any) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,4000}", value):
        raise Unreadable('a whole number as text, such as "4096"')
    return int(value)


def _read_array(value: Any) -> Any:
    rows = [
        _read_array(item) if isinstance(item, list) else _read_float(item)
        for item in _read(list, value)
    ]
    if len({np.shape(row) for row in rows}) > 1:
        raise Unreadable("an array whose rows are equally long")
    return np.array(rows, dtype=np.float64)


def _read_schema(value: Any) -> Any:
    if not isinstance(value, dict):
        raise Unreadable("a schema")
    for name, spec in value.items():  # dpreg 0.1 wrote two levels such as "0" and "1" as a list
        if isinstance(spec, list) and all(isinstance(one, str) for one in spec):
            value = {**value, name: {"levels": spec}}
    return _settled(Declared, value, "schema")


_READERS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    float: _read_float,
    Fraction: _read_exact,
    Fraction | float: _read_number,
    Huge: _read_huge,
    Vector: _read_array,
    Matrix: _read_array,
    Declared: _read_schema,
    Mapping[str, Any]: partial(_read, dict),
}


def _fields_read(payload: object, kind: type[Any]) -> dict[str, Any]:
    """Return the arguments of a dataclass that a JSON object holds.

    More is an error, and so is less, except for fields with a default: they came later than some
    files.
    """
    found, hints, keys = _read(dict, payload), fields_of(kind), getattr(kind, "saved_as", {})
    names = {keys.get(name, name): name for name in hints}
    if strange := sorted(set(found) - set(names)):
        raise Unreadable(f"without the unknown fields {', '.join(map(repr, strange))}")
    for key, field in zip(names, fields(kind), strict=True):
        needed = field.default is MISSING and field.default_factory is not dict
        if needed and key not in found:
            raise Unreadable("there", key)
    return {
        name: _named(key, partial(_mapped, hints[name], do=_read), found[key])
        for key, name in names.items()
        if key in found
    }


def _named(name: str, do: Callable[[Any], Any], value: Any) -> Any:
    """Do something to the value of a name, which stands in the path of what is wrong."""
    try:
        return do(value)
    except Unreadable as problem:
        problem.path.append(name)
        raise


# Whole files.


def dumps(payload: Mapping[str, Any], *, lines: bool = False) -> str:
    """Write standard JSON in ASCII; with `lines`, each field on a line of its own."""
    if not lines:
        return json.dumps(payload, allow_nan=False)
    told = [f"{json.dumps(name)}: {dumps(value)}" for name, value in payload.items()]
    return "{\n" + ",\n".join(told) + "\n}\n"


def loads(text: str) -> dict[str, Any]:
    """Read JSON that should hold a result of any kind."""

    def no_constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")

    try:
        payload = json.loads(text, parse_constant=no_constant)
    except (ValueError, RecursionError) as problem:
        raise ArgumentError(f"this is not a saved dpreg result: {problem}") from None
    if not isinstance(payload, dict) or not {"dpreg", "kind"} <= set(payload):
        raise ArgumentError('this is not a saved dpreg result: it lacks "dpreg" and "kind"')
    found = payload["dpreg"]
    if found not in (VERSION, *_OLDER):
        raise ArgumentError(
            f"this result is in format {found!r}; this dpreg reads {VERSION!r} and older: load it "
            "with the version of dpreg that saved it"
        )
    return payload


def decode(payload: object, kind: type[Released]) -> dict[str, Any]:
    """Return the constructor's arguments for a class of results, every field checked."""
    found = _read(dict, payload)
    if (other := found.get("kind")) != kind.kind:
        raise ArgumentError(f"this is a saved {other!r} result, not a {kind.kind!r} one")
    try:
        told = {name: value for name, value in found.items() if name not in HEAD}
        return _fields_read(_with_groups(told), kind)
    except Unreadable as problem:
        where = ".".join(reversed(problem.path)) or "it"
        raise ArgumentError(f"the saved result is damaged: {where} must be {problem}") from None


def _with_groups(saved: dict[str, Any]) -> dict[str, Any]:
    """Write the alternatives of dpreg 0.2, from each term to what might stand for it, as groups."""
    found = saved.get("alternatives")
    if not isinstance(found, dict):
        return saved
    groups = [
        [term, *dict.fromkeys(other for each in instead for other in each if other != term)]
        for term, instead in found.items()
        if isinstance(instead, list)
    ]
    return {**saved, "alternatives": groups}
