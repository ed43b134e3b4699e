"""Results as JSON and back: the format, field by field.

Reading runs no code from the file, checks every field, and raises ArgumentError that names what is
wrong. A test holds the tables below against the fields of the classes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from dpreg.errors import ArgumentError
from dpreg.privacy.budget import BudgetTable, Spend
from dpreg.results import given_choice
from dpreg.results.claim import PrivacyClaim
from dpreg.results.codecs import (
    ARRAY,
    EXACT,
    FLAG,
    FLOAT,
    HUGE,
    INTEGER,
    NUMBER,
    PLAIN,
    SCHEMA,
    TEXT,
    Codec,
    Unreadable,
    built,
    list_of,
    mapping_of,
    optional,
    read_fields,
)
from dpreg.results.looks import Look
from dpreg.results.record import LedgerPosition, ReleaseRecord

__all__ = ["CODECS", "VERSION", "decode", "dumps", "encode", "loads"]

VERSION: Final = "0.2"
"""The version of the format that is written."""

_OLDER: Final = ("0.1",)
"""Versions that are read as well."""

_SINCE: Final[Mapping[str, Mapping[str, Any]]] = {
    "regression": {
        "privacy_covariance": None,
        "noise_degrees": None,
        "looks": [],
        "weak": {},
        "conditional": [],
    },
    "selection": {
        "best": [],
        "alternatives": {},
        "chosen_again": {},
        "certified": None,
        "looks": [],
    },
}
"""What files of `_OLDER` lack, by kind; all of them lack the record."""

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
    codecs = CODECS[result.kind]
    return head | {name: codec.encode(getattr(result, name)) for name, codec in codecs.items()}


def decode(payload: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the constructor's arguments, every field checked."""
    if payload.get("kind") != kind:
        raise ArgumentError(f"this is a saved {payload.get('kind')!r} result, not a {kind!r} one")
    try:
        fields = {name: value for name, value in payload.items() if name not in HEAD}
        if payload.get("dpreg") in _OLDER:
            fields = {"record": None, **_SINCE.get(kind, {}), **fields}
        return read_fields(fields, CODECS[kind])
    except Unreadable as problem:
        where = ".".join(reversed(problem.path)) or "it"
        raise ArgumentError(f"the saved result is damaged: {where} must be {problem}") from None


def _parts(version: str) -> tuple[int, ...]:
    numbers = version.split(".")
    return tuple(map(int, numbers)) if all(part.isdecimal() for part in numbers) else ()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _read_regression(value: Any) -> Any:
    from dpreg.results.regression import RegressionResults

    if not isinstance(value, dict):
        raise Unreadable("an object")
    return RegressionResults(**decode(value, "regression"))


_TEXTS: Final = list_of(TEXT)

_SPEND: Final = built(
    Spend,
    {
        "step": TEXT,
        "mechanism": TEXT,
        "eps": EXACT,
        "delta": EXACT,
        "note": TEXT,
        "rows": TEXT,
    },
)

_SPENDS: Final = list_of(_SPEND)

_WHOLE_CLAIM: Final = built(
    PrivacyClaim,
    {
        "neighbors": TEXT,
        "contributions": INTEGER,
        "spends": Codec(_SPENDS.encode, lambda value: BudgetTable(_SPENDS.decode(value))),
        "seeded": FLAG,
        "person": optional(TEXT),
        "caveats": _TEXTS,
    },
)

_LOOK: Final = built(
    Look,
    {
        "mechanism": TEXT,
        "share": EXACT,
        "radius": optional(FLOAT),
        "width": FLOAT,
        "opened": FLAG,
        "weight": FLOAT,
        "cells": ARRAY,
        "noise_sd": ARRAY,
        "whitening": ARRAY,
        "offset": ARRAY,
        "center": ARRAY,
    },
)

_POSITION: Final = built(
    LedgerPosition,
    {
        "ledger": TEXT,
        "entry": INTEGER,
        "head": TEXT,
        "cap_eps": TEXT,
        "cap_delta": TEXT,
        "spent_eps": TEXT,
        "spent_delta": TEXT,
    },
)

_RECORD: Final = built(
    ReleaseRecord,
    {
        "call": TEXT,
        "arguments": PLAIN,
        "when": TEXT,
        "versions": mapping_of(TEXT),
        "ledger": optional(_POSITION),
    },
)
_TRUNCATED: Final = built(given_choice.read, {"estimate": FLOAT, "se": FLOAT, "intervals": ARRAY})


def _read_claim(value: Any) -> Any:
    """Read a claim, of before persons could be named as well."""
    return _WHOLE_CLAIM.decode({"person": None, **value} if isinstance(value, dict) else value)


_CLAIM: Final = Codec(_WHOLE_CLAIM.encode, _read_claim)

_REGRESSION: Final[Mapping[str, Codec]] = {
    "formula": TEXT,
    "schema": SCHEMA,
    "endog_names": TEXT,
    "exog_names": _TEXTS,
    "coefficients": ARRAY,
    "covariance": ARRAY,
    "se_sampling": ARRAY,
    "se_privacy": ARRAY,
    "residual_variance": optional(FLOAT),
    "r_squared": optional(FLOAT),
    "nobs": optional(INTEGER),
    "passes": INTEGER,
    "residual_df": optional(FLOAT),
    "method": TEXT,
    "noise": TEXT,
    "scaling": TEXT,
    "fit": TEXT,
    "eps": EXACT,
    "delta": EXACT,
    "clip": EXACT,
    "center": FLAG,
    "bounds": mapping_of(TEXT),
    "claim": _CLAIM,
    "ridged": FLAG,
    "ridge": optional(FLOAT),
    "interval_method": TEXT,
    "interval_draws": optional(ARRAY),
    "complete_rows": optional(FLOAT),
    "column_widths": optional(ARRAY),
    "privacy_covariance": optional(ARRAY),
    "noise_degrees": optional(INTEGER),
    "looks": list_of(_LOOK),
    "weak": mapping_of(TEXT),
    "conditional": list_of(_TRUNCATED),
    "notes": _TEXTS,
    "design_formula": optional(TEXT),
    "record": optional(_RECORD),
}

_SELECTION: Final[Mapping[str, Codec]] = {
    "formula": TEXT,
    "schema": SCHEMA,
    "response": TEXT,
    "candidates": _TEXTS,
    "kept": _TEXTS,
    "columns": mapping_of(_TEXTS),
    "models": list_of(_TEXTS),
    "chosen": _TEXTS,
    "selected_formula": TEXT,
    "n_models": HUGE,
    "nobs": optional(INTEGER),
    "passes": INTEGER,
    "method": TEXT,
    "mechanism": TEXT,
    "engine": TEXT,
    "units": TEXT,
    "hierarchy": TEXT,
    "max_terms": optional(INTEGER),
    "eps": EXACT,
    "delta": EXACT,
    "radius": optional(NUMBER),
    "radius_source": TEXT,
    "clip": EXACT,
    "center": FLAG,
    "penalty": TEXT,
    "phi": optional(NUMBER),
    "psi": optional(NUMBER),
    "sigma2": optional(NUMBER),
    "bounds": mapping_of(TEXT),
    "claim": _CLAIM,
    "notes": _TEXTS,
    "best": _TEXTS,
    "alternatives": mapping_of(list_of(_TEXTS)),
    "chosen_again": mapping_of(FLOAT),
    "certified": optional(FLAG),
    "looks": list_of(_LOOK),
    "regression": optional(Codec(encode, _read_regression)),
    "record": optional(_RECORD),
}

_ESTIMATES: Final[Mapping[str, Codec]] = {
    "by": optional(TEXT),
    "groups": _TEXTS,
    "estimates": ARRAY,
    "se_sampling": ARRAY,
    "se_privacy": ARRAY,
    "nobs": optional(INTEGER),
    "passes": INTEGER,
    "noise": TEXT,
    "eps": EXACT,
    "delta": EXACT,
    "claim": _CLAIM,
    "notes": _TEXTS,
    "record": optional(_RECORD),
}

_CLASSIC: Final[Mapping[str, Codec]] = {
    **_ESTIMATES,
    "statistic": TEXT,
    "names": _TEXTS,
    "lower": optional(ARRAY),
    "upper": optional(ARRAY),
    "alpha": optional(FLOAT),
    "counts": optional(ARRAY),
    "sufficient": optional(ARRAY),
    "sufficient_names": _TEXTS,
    "blocks": optional(INTEGER),
    "bounds": mapping_of(ARRAY),
}

_HISTOGRAM: Final[Mapping[str, Codec]] = {
    **_ESTIMATES,
    "column": TEXT,
    "levels": _TEXTS,
    "edges": optional(ARRAY),
    "binning": TEXT,
    "bin_counts": ARRAY,
    "probabilities": ARRAY,
}

CODECS: Final[Mapping[str, Mapping[str, Codec]]] = {
    "classic": _CLASSIC,
    "histogram": _HISTOGRAM,
    "regression": _REGRESSION,
    "selection": _SELECTION,
}
"""Field to codec, for each kind of result."""
