"""Results as JSON and back, and their fields as plain, immutable values: all by the fields' types.

A `Codec` says of a type how a value is settled when a result is made, how it is written, and how it
is read and checked. A new field needs no line here. Reading runs no code from the file and accepts
nothing but what writing produces: anything else raises `Unreadable`, which collects the path of the
field on its way up, and becomes an ArgumentError that names it. Exact numbers are strings ("0.1",
"1/3"), so that they stay exact; floats keep every bit.

Tested in `tests/results/test_serialize.py`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError, DpregError
from dpreg.privacy.budget import BudgetTable, Spend, decimal_string, exact
from dpreg.results.inference import read_only
from dpreg.schema import Schema

if TYPE_CHECKING:
    from dpreg.results.base import Released

_LONGEST: Final = 4000  # characters of an exact number; Python reads no longer integers
_NOT_NUMBERS: Final = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf}
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


def _as_it_is(value: Any, name: str = "") -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Codec:
    """How a field is written, how it is read and checked, and how a result's maker settles it."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    settle: Callable[[Any, str], Any] = _as_it_is


class Settled:
    """The part of frozen dataclasses that makes their fields plain and immutable, by type."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Settle the fields, and check that they fit together."""
        for name, codec in fields_of(type(self)).items():
            object.__setattr__(self, name, codec.settle(getattr(self, name), name))
        self._check()

    def _check(self) -> None:
        """Raise an ArgumentError where the fields do not fit together."""


# Values of one kind.


def _plain_type(kind: type, expected: str) -> Codec:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise Unreadable(expected)
        return value

    return Codec(kind, read)


def _read_exact(value: Any) -> Fraction:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise Unreadable('an exact number as text, such as "0.1" or "1/3"')
    try:
        return exact(value, "the number")
    except DpregError as problem:
        raise Unreadable(f"an exact number ({problem})") from None


def _write_float(value: Any) -> float | str:
    number = float(value)
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Inf" if number > 0 else "-Inf"


def _read_float(value: Any) -> float:
    if isinstance(value, str) and value in _NOT_NUMBERS:
        return _NOT_NUMBERS[value]
    if type(value) not in (int, float):
        raise Unreadable('a number, or "NaN", "Inf" or "-Inf"')
    try:
        return float(value)
    except OverflowError:
        raise Unreadable("a number that a float can hold") from None


def _write_number(value: Any) -> float | str:
    return decimal_string(value) if isinstance(value, Fraction) else _write_float(value)


def _read_number(value: Any) -> Fraction | float:
    exactly = isinstance(value, str) and value not in _NOT_NUMBERS
    return _read_exact(value) if exactly else _read_float(value)


def _read_huge(value: Any) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,4000}", value):
        raise Unreadable('a whole number as text, such as "4096"')
    return int(value)


HUGE: Final = Codec(str, _read_huge)
"""An integer that may be too large for a float, as text."""


def _write_array(value: Any) -> Any:
    return _write_float(value) if np.ndim(value) == 0 else [_write_array(item) for item in value]


def _read_array(value: Any) -> Any:
    rows = [
        _read_array(item) if isinstance(item, list) else _read_float(item)
        for item in _LIST.decode(value)
    ]
    if len({np.shape(row) for row in rows}) > 1:
        raise Unreadable("an array whose rows are equally long")
    return np.array(rows, dtype=np.float64)


def _array(dimensions: int) -> Codec:
    return Codec(_write_array, _read_array, lambda value, name: read_only(value, dimensions, name))


_LIST: Final = _plain_type(list, "a list")
_OBJECT: Final = _plain_type(dict, "an object")
Vector = Annotated[Floats, _array(1)]
Matrix = Annotated[Floats, _array(2)]


def _plain(value: Any) -> Any:
    """Return a value in JSON's own types: tuples as lists, NumPy's numbers as Python's."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _plain_schema(schema: Mapping[str, Any]) -> Any:
    """Return a checked schema in JSON's own types, written the same way whoever typed it."""
    return _plain(Schema.from_any(schema).to_dict())


def _read_schema(value: Any) -> Any:
    if not isinstance(value, dict):
        raise Unreadable("a schema")
    for name, spec in value.items():  # dpreg 0.1 wrote two levels such as "0" and "1" as a list
        if isinstance(spec, list) and all(isinstance(one, str) for one in spec):
            value = {**value, name: {"levels": spec}}
    try:
        return _plain_schema(value)
    except DpregError as problem:
        raise Unreadable(f"a schema ({problem})") from None


SCHEMA: Final = Codec(_plain_schema, _read_schema, lambda value, _: _plain_schema(value))


# Values made of others.


def _lifted(
    codec: Codec,
    over: Callable[[Callable[[Any], Any], Any], Any],
    check: Callable[[Any], Any] = _as_it_is,
    make: Callable[[Any], Any] = _as_it_is,
) -> Codec:
    """Return the codec of what holds values: `over` does something to each of them.

    What is read goes through `check` first, and what was read or settled through `make` last.
    """
    return Codec(
        lambda value: over(codec.encode, value),
        lambda value: make(over(codec.decode, check(value))),
        lambda value, name: make(over(lambda item: codec.settle(item, name), value)),
    )


def _optional(codec: Codec) -> Codec:
    """Allow None, written as null."""
    return _lifted(codec, lambda do, value: None if value is None else do(value))


def _list_of(codec: Codec, make: Callable[[Any], Any] = tuple) -> Codec:
    """Write a sequence as a list; it is read as a tuple."""
    return _lifted(codec, lambda do, values: [do(item) for item in values], _LIST.decode, make)


def _mapping_of(codec: Codec) -> Codec:
    """Write a mapping of str as an object."""

    def over(do: Callable[[Any], Any], value: Mapping[Any, Any]) -> dict[str, Any]:
        return {str(name): _named(str(name), do, item) for name, item in value.items()}

    return _lifted(codec, over, _OBJECT.decode)


def _built(kind: type) -> Codec:
    """Write a dataclass by its fields; it is read by calling it with them."""

    def read(value: Any) -> Any:
        arguments = _read_fields(value, kind)
        try:
            return kind(**arguments)
        except DpregError as problem:
            raise Unreadable(f"right ({problem})") from None

    return Codec(_written, read)


def _written(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON, under their keys.

    Its `saved_as` has keys of fields whose name is not their key, and its `sparing` names those
    that are written only where they are true.
    """
    keys, sparing = getattr(value, "saved_as", {}), getattr(value, "sparing", ())
    told = {name: (codec, getattr(value, name)) for name, codec in fields_of(type(value)).items()}
    return {
        keys.get(name, name): codec.encode(held)
        for name, (codec, held) in told.items()
        if name not in sparing or held
    }


def _read_fields(payload: object, kind: type[Any]) -> dict[str, Any]:
    """Return the arguments of a dataclass that a JSON object holds.

    More is an error, and so is less, except for fields with a default: they came later than some
    files.
    """
    found, codecs, keys = _OBJECT.decode(payload), fields_of(kind), getattr(kind, "saved_as", {})
    names = {keys.get(name, name): name for name in codecs}
    if strange := sorted(set(found) - set(names)):
        raise Unreadable(f"without the unknown fields {', '.join(map(repr, strange))}")
    needed = {
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is not dict
    }
    if lacking := [key for key, name in names.items() if name in needed and key not in found]:
        raise Unreadable("there", lacking[0])
    return {
        name: _named(key, codecs[name].decode, found[key])
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


def _codec_of(hint: Any) -> Codec:
    """Return the codec of a type as it stands in an annotation.

    These are `_CODECS`, arrays, tuples of one type, mappings of str, dataclasses, ``X | None`` of
    these, and ``Annotated[X, codec]`` for another codec than X's own.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _CODECS:
        return _CODECS[hint]
    if origin is Annotated:
        return next(one for one in arguments[1:] if isinstance(one, Codec))
    if type(None) in arguments:
        others = [one for one in arguments if one is not type(None)]
        return _optional(_codec_of(reduce(or_, others)))
    if origin in _ARRAYS:
        return Codec(_write_array, _read_array)
    if origin is tuple:
        return _list_of(_codec_of(arguments[0]))
    if origin is Mapping:
        return _mapping_of(_codec_of(arguments[1]))
    if hasattr(hint, "from_payload"):
        return Codec(lambda value: value.to_dict(), hint.from_payload)
    return _built(hint)


def _fields(kind: type[Any]) -> Mapping[str, Codec]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: _codec_of(hints[field.name]) for field in fields(kind)}


fields_of: Final[Callable[[Any], Mapping[str, Codec]]] = cache(_fields)
"""Return the codec of each field of a dataclass, in their order, from its annotations."""

_CODECS: Final[Mapping[Any, Codec]] = {
    str: _plain_type(str, "text"),
    bool: _plain_type(bool, "true or false"),
    int: _plain_type(int, "a whole number"),
    float: Codec(_write_float, _read_float, lambda value, _: _plain(value)),
    Fraction: Codec(decimal_string, _read_exact, exact),
    Fraction | float: Codec(
        _write_number,
        _read_number,
        lambda value, _: Fraction(value) if isinstance(value, int) else value,
    ),
    Mapping[str, Any]: Codec(_plain, _OBJECT.decode, lambda value, _: _plain(value)),
    BudgetTable: _list_of(_built(Spend), BudgetTable),
}
_ARRAYS: Final = (np.ndarray, get_origin(NDArray[np.float64]))
"""From Python 3.12 on NumPy 2.5 has a name of a type here, whose origin is that name."""


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


def encode(result: Released) -> dict[str, Any]:
    """Return the mapping that stands for a result."""
    head = (VERSION, result.kind, result.claim.stamp, result.claim.sentence)
    return dict(zip(HEAD, head, strict=True)) | _written(result)


def decode(payload: Mapping[str, Any], kind: type[Released]) -> dict[str, Any]:
    """Return the constructor's arguments for a class of results, every field checked."""
    if payload.get("kind") != kind.kind:
        raise ArgumentError(
            f"this is a saved {payload.get('kind')!r} result, not a {kind.kind!r} one"
        )
    try:
        found = {name: value for name, value in payload.items() if name not in HEAD}
        return _read_fields(_with_groups(found), kind)
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
