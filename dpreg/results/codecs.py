"""How the values in a result are written as JSON, and how each is read back and checked.

A codec is a pair of functions. Reading accepts nothing but what writing produces: anything else
raises `Unreadable`, which collects the path of the field on its way up. Exact numbers are strings
("0.1", "1/3"), so that they stay exact; floats keep every bit.

Tested in `tests/results/test_serialize.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dpreg.errors import DpregError
from dpreg.privacy.budget import decimal_string, exact
from dpreg.schema import Schema

__all__ = [
    "HUGE",
    "SCHEMA",
    "Codec",
    "Unreadable",
    "built",
    "codec_of",
    "codecs_of",
    "list_of",
    "plain_mapping",
    "plain_schema",
    "read_fields",
]

_LONGEST: Final = 4000  # characters of an exact number; Python reads no longer integers
_NOT_NUMBERS: Final = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf}


class Unreadable(Exception):
    """Says what a field should be; `path` is where it stands, innermost name first."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.path: list[str] = []


@dataclass(frozen=True, slots=True)
class Codec:
    """How a field is written, and how it is read and checked."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def read_fields(payload: object, codecs: Mapping[str, Codec]) -> dict[str, Any]:
    """Read every field of a JSON object; more or fewer than `codecs` names is an error."""
    found = _OBJECT.decode(payload)
    strange = sorted(set(found) - set(codecs))
    if strange:
        raise Unreadable(f"without the unknown fields {', '.join(map(repr, strange))}")
    return {name: _read_field(found, name, codec) for name, codec in codecs.items()}


def _read_field(payload: Mapping[str, Any], name: str, codec: Codec) -> Any:
    try:
        if name not in payload:
            raise Unreadable("there")
        return codec.decode(payload[name])
    except Unreadable as problem:
        problem.path.append(name)
        raise


def optional(codec: Codec) -> Codec:
    """Allow None, written as null."""
    return Codec(
        lambda value: None if value is None else codec.encode(value),
        lambda value: None if value is None else codec.decode(value),
    )


def list_of(codec: Codec) -> Codec:
    """Write a sequence as a list; it is read as a tuple."""

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Unreadable("a list")
        return tuple(codec.decode(item) for item in value)

    return Codec(lambda value: [codec.encode(item) for item in value], read)


def mapping_of(codec: Codec) -> Codec:
    """Write a mapping of str as an object."""
    return Codec(
        lambda value: {name: codec.encode(item) for name, item in value.items()},
        lambda value: {name: _read_field(value, name, codec) for name in _OBJECT.decode(value)},
    )


def built(make: Callable[..., Any], codecs: Mapping[str, Codec]) -> Codec:
    """Write an object by its attributes; it is read by calling `make` with them."""

    def read(value: Any) -> Any:
        arguments = read_fields(value, codecs)
        try:
            return make(**arguments)
        except DpregError as problem:
            raise Unreadable(f"right ({problem})") from None

    def write(value: Any) -> dict[str, Any]:
        return {name: codec.encode(getattr(value, name)) for name, codec in codecs.items()}

    return Codec(write, read)


def _plain_type(kind: type, expected: str) -> Codec:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise Unreadable(expected)
        return value

    return Codec(kind, read)


TEXT: Final = _plain_type(str, "text")
FLAG: Final = _plain_type(bool, "true or false")
INTEGER: Final = _plain_type(int, "a whole number")


def _read_exact(value: Any) -> Fraction:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise Unreadable('an exact number as text, such as "0.1" or "1/3"')
    try:
        return exact(value, "the number")
    except DpregError as problem:
        raise Unreadable(f"an exact number ({problem})") from None


EXACT: Final = Codec(decimal_string, _read_exact)


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


FLOAT: Final = Codec(_write_float, _read_float)


def _write_number(value: Any) -> float | str:
    return decimal_string(value) if isinstance(value, Fraction) else _write_float(value)


def _read_number(value: Any) -> Fraction | float:
    if isinstance(value, str) and value not in _NOT_NUMBERS:
        return _read_exact(value)
    return _read_float(value)


NUMBER: Final = Codec(_write_number, _read_number)
"""A Fraction, as text, or a float, as a number."""


def _read_huge(value: Any) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,4000}", value):
        raise Unreadable('a whole number as text, such as "4096"')
    return int(value)


HUGE: Final = Codec(str, _read_huge)
"""An integer that may be too large for a float, as text."""


def _write_array(value: Any) -> Any:
    return _write_float(value) if np.ndim(value) == 0 else [_write_array(item) for item in value]


def _read_array(value: Any) -> Any:
    rows = [_read_array(item) if isinstance(item, list) else _read_float(item) for item in value]
    lengths = {np.shape(row) for row in rows}
    if len(lengths) > 1:
        raise Unreadable("an array whose rows are equally long")
    return np.array(rows, dtype=np.float64)


_LIST: Final = _plain_type(list, "a list of numbers")
_OBJECT: Final = _plain_type(dict, "an object")
ARRAY: Final = Codec(_write_array, lambda value: _read_array(_LIST.decode(value)))
PLAIN: Final = Codec(lambda value: plain_mapping(value), _OBJECT.decode)
"""A mapping that is in JSON's own types already."""


def plain_mapping(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping in JSON's own types: tuples as lists, NumPy's numbers as Python's."""
    return {str(name): _plain(value) for name, value in mapping.items()}


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a checked schema in JSON's own types, written the same way whoever typed it."""
    return plain_mapping(Schema.from_any(schema).to_dict())


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain_mapping(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _read_schema(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unreadable("a schema")
    try:  # dpreg 0.1 wrote two levels such as "0" and "1" as a plain list
        return plain_schema({n: _explicit(spec) for n, spec in value.items()})
    except DpregError as problem:
        raise Unreadable(f"a schema ({problem})") from None


def _explicit(spec: Any) -> Any:
    texts = isinstance(spec, list) and all(isinstance(one, str) for one in spec)
    return {"levels": spec} if texts else spec


SCHEMA: Final = Codec(plain_schema, _read_schema)


_PLAIN_TYPES: Final[Mapping[Any, Codec]] = {
    str: TEXT,
    bool: FLAG,
    int: INTEGER,
    float: FLOAT,
    Fraction: EXACT,
    Fraction | float: NUMBER,
    Mapping[str, Any]: PLAIN,
}
_ARRAYS: Final = (np.ndarray, get_origin(NDArray[np.float64]))
"""From Python 3.12 on NumPy 2.5 has a name of a type here, whose origin is that name."""


def codec_of(hint: Any, special: Mapping[Any, Codec] | None = None) -> Codec:
    """Return the codec of a type as it stands in an annotation.

    Parameters
    ----------
    hint : type
        Plain types, arrays, tuples of one type, mappings of str, dataclasses, ``X | None`` of
        these, and ``Annotated[X, codec]`` for another codec than X's own.
    special : mapping of type to Codec, optional
        Types whose codec is not made of their fields.
    """
    known = {**_PLAIN_TYPES, **(special or {})}
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in known:
        return known[hint]
    if origin is Annotated:
        return next(one for one in arguments[1:] if isinstance(one, Codec))
    if type(None) in arguments:
        rest = [one for one in arguments if one is not type(None)]
        return optional(codec_of(reduce(or_, rest), special))
    if origin in _ARRAYS:
        return ARRAY
    if origin is tuple:
        return list_of(codec_of(arguments[0], special))
    if origin is Mapping:
        return mapping_of(codec_of(arguments[1], special))
    if hasattr(hint, "from_payload"):
        return Codec(lambda value: value.to_dict(), hint.from_payload)
    return built(hint, codecs_of(hint, special=special))


def codecs_of(kind: type, *, special: Mapping[Any, Codec] | None = None) -> dict[str, Codec]:
    """Return the codec of each field of a dataclass, in their order."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: codec_of(hints[field.name], special) for field in fields(kind)}
