"""Results as JSON and back.

The format follows the annotations of each class's fields (`codecs_of`), so a new field is written
and read without a change here. Reading runs no code from the file, checks every field, and raises
ArgumentError that names what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from dpreg.errors import ArgumentError
from dpreg.privacy.budget import BudgetTable, Spend
from dpreg.results import given_choice
from dpreg.results.claim import PrivacyClaim
from dpreg.results.codecs import (
    Codec,
    Unreadable,
    built,
    codec_of,
    codecs_of,
    list_of,
    read_fields,
)
from dpreg.results.truncated import Truncated

if TYPE_CHECKING:
    from dpreg.results.base import Released

__all__ = ["VERSION", "decode", "dumps", "encode", "fields_of", "loads"]

VERSION: Final = "0.2"
"""The version of the format that is written."""

_OLDER: Final = ("0.1",)
"""Versions that are read as well."""

HEAD: Final = ("dpreg", "kind", "stamp", "privacy")
"""What stands before the fields: "stamp" and "privacy" are for readers that are not dpreg, and
are made anew on loading."""


def dumps(payload: Mapping[str, Any], *, lines: bool = False) -> str:
    """Write standard JSON in ASCII; with `lines`, each field on a line of its own."""
    if not lines:
        return json.dumps(payload, allow_nan=False)
    fields = [f"{json.dumps(name)}: {dumps(value)}" for name, value in payload.items()]
    return "{\n" + ",\n".join(fields) + "\n}\n"


def loads(text: str) -> dict[str, Any]:
    """Read JSON that should hold a result of any kind."""
    try:
        payload = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        raise ArgumentError(f"this is not a saved dpreg result: {problem}") from None
    if not isinstance(payload, dict) or not {"dpreg", "kind"} <= set(payload):
        raise ArgumentError('this is not a saved dpreg result: it lacks "dpreg" and "kind"')
    found = payload["dpreg"]
    if found not in (VERSION, *_OLDER):
        newer = isinstance(found, str) and _parts(found) > _parts(VERSION)
        told = "was saved by a newer dpreg, in format" if newer else "is in format"
        raise ArgumentError(
            f"this result {told} {found!r}; this dpreg reads {VERSION!r} and older: load it with "
            "the version of dpreg that saved it"
        )
    return payload


def encode(result: Any) -> dict[str, Any]:
    """Return the mapping that stands for a result."""
    claim: PrivacyClaim = result.claim
    head = dict(zip(HEAD, (VERSION, result.kind, claim.stamp, claim.sentence), strict=True))
    keys, codecs = result.saved_as, fields_of(type(result))
    told = {name: codec.encode(getattr(result, name)) for name, codec in codecs.items()}
    return head | {keys.get(name, name): value for name, value in told.items()}


def decode(payload: Mapping[str, Any], kind: type[Released]) -> dict[str, Any]:
    """Return the constructor's arguments for a class of results, every field checked.

    Older files lack fields that came later: those with a default may be missing.
    """
    if payload.get("kind") != kind.kind:
        raise ArgumentError(
            f"this is a saved {payload.get('kind')!r} result, not a {kind.kind!r} one"
        )
    try:
        found = _with_groups({n: value for n, value in payload.items() if n not in HEAD})
        needed = {f.name for f in fields(kind) if f.default is f.default_factory}  # both MISSING
        keys = {name: kind.saved_as.get(name, name) for name in fields_of(kind)}
        keys = {name: key for name, key in keys.items() if key in found or name in needed}
        codecs = fields_of(kind)
        read = read_fields(found, {key: codecs[name] for name, key in keys.items()})
        return {name: read[key] for name, key in keys.items()}
    except Unreadable as problem:
        where = ".".join(reversed(problem.path)) or "it"
        raise ArgumentError(f"the saved result is damaged: {where} must be {problem}") from None


def _with_groups(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Write the alternatives of dpreg 0.2, from each term to what might stand for it, as groups."""
    found = saved.get("alternatives")
    if not isinstance(found, dict):
        return dict(saved)
    sets = {term: instead for term, instead in found.items() if isinstance(instead, list)}
    groups = [
        [term, *dict.fromkeys(other for each in instead for other in each if other != term)]
        for term, instead in sets.items()
    ]
    return {**saved, "alternatives": groups}


def _parts(version: str) -> tuple[int, ...]:
    numbers = version.split(".")
    return tuple(map(int, numbers)) if all(part.isdecimal() for part in numbers) else ()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _read_claim(value: Any) -> Any:
    """Read a claim, also one that was saved before persons could be named."""
    since = {"person": None, "whole": False}
    return _WHOLE_CLAIM.decode({**since, **value} if isinstance(value, dict) else value)


def _write_claim(claim: PrivacyClaim) -> Any:
    """Write a claim; whether a person's rows were summed only where they were."""
    told = _WHOLE_CLAIM.encode(claim)
    return {name: value for name, value in told.items() if name != "whole" or value}


_SPENDS: Final = list_of(codec_of(Spend))
_TABLE: Final = Codec(_SPENDS.encode, lambda value: BudgetTable(_SPENDS.decode(value)))
_WHOLE_CLAIM: Final = built(PrivacyClaim, codecs_of(PrivacyClaim, special={BudgetTable: _TABLE}))
_SPECIAL: Final[Mapping[Any, Codec]] = {
    PrivacyClaim: Codec(_write_claim, _read_claim),
    Truncated: built(given_choice.read, codecs_of(Truncated)),
}
"""Classes whose codec is not made of their fields alone."""


_READ: Final[dict[type[Any], Mapping[str, Codec]]] = {}
"""Classes whose annotations were read: that takes longer than to write a result."""


def fields_of(kind: type[Released]) -> Mapping[str, Codec]:
    """Return the codec of every field of a class of results, from the fields' annotations."""
    if kind not in _READ:
        _READ[kind] = codecs_of(kind, special=_SPECIAL)
    return _READ[kind]
