"""Calling dpreg on R's behalf: a request in, a reply out, never an exception.

A reply holds ``ok``; then ``value``, or ``class`` and ``message`` of what went wrong; and the texts
of dpreg's warnings.

A warning comes before the charge, so that whoever takes it for an error (``options(warn = 2)``,
``tryCatch(warning = )``) has spent nothing. R cannot be called from here, since it might leave by
a jump. So a call that warns is stopped there, and its reply says so by ``again``: R signals the
warning and, if it goes on, sends the request once more with how many warnings it has ``heard``, at
which the call does not stop a second time.

Errors and warnings of dpreg are made of public facts. The message of any other exception may hold
cells, so only its class is shown, unless the curator asked for more by
``options(dpreg.debug = TRUE)``.
"""

from __future__ import annotations

import traceback
import warnings
from typing import Any

from dpreg.api.context import check_schema_names
from dpreg.errors import DpregError, DpregWarning
from dpreg.privacy.ledger.handle import kept
from dpreg.schema import Schema
from dpreg_bridge.columns import table
from dpreg_bridge.finalizers import guarded
from dpreg_bridge.interrupts import pythons_interrupts
from dpreg_bridge.rpy import R
from dpreg_bridge.sources import opened
from dpreg_bridge.values import from_r, to_r
from dpreg_bridge.verbs import VERBS, WITH_WORDS, library_verb
from dpreg_bridge.views import view
from dpreg_bridge.words import Words

__all__ = ["answer"]


def answer(request: Any) -> Any:
    """Answer one request of R's. An exception that left here would be NULL to R."""
    try:
        with guarded(), pythons_interrupts():
            return _answer(request)
    except KeyboardInterrupt:
        return to_r({"warnings": (), **_failure("KeyboardInterrupt", "")})


class _Warned(BaseException):
    """Stops a call that warns; no part of dpreg takes it for an error of its own."""


def _answer(request: Any) -> Any:
    asked = dict(zip(map(str, request.names), request, strict=True))
    heard = int(from_r(asked["heard"]))
    words = Words.of(from_r(asked.get("words", R.NULL)))
    told: dict[str, None] = {}

    def hear(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if not issubclass(category, DpregWarning) or str(message) in told:
            return
        told[str(message)] = None
        if len(told) > heard and not receipt:
            raise _Warned

    with warnings.catch_warnings(), kept() as receipt:
        warnings.simplefilter("always")
        warnings.showwarning = hear
        try:
            reply = _reply(asked, words)
        except _Warned:
            reply = {"ok": False, "again": True}
    return to_r({"warnings": tuple(map(words.text, tuple(told)[heard:])), **reply})


def _reply(request: dict[str, Any], words: Words) -> dict[str, Any]:
    try:
        verb = str(from_r(request["verb"]))
        arguments = from_r(request["arguments"]) or {}
        rows = from_r(request["rows"])
        source = from_r(request["source"])
        if rows is not None:
            arguments["data"] = table(request["columns"], rows)
            _declare_only(arguments, from_r(request.get("names", R.NULL)))
        elif source is not None:
            arguments["data"] = opened(source)
        if verb in WITH_WORDS:
            told = WITH_WORDS[verb](words, **arguments)
        else:
            told = (VERBS.get(verb) or library_verb(verb))(**arguments)
        return {"ok": True, "value": to_r(view(told, words))}
    except DpregError as error:
        return _failure(_kinds(type(error)), words.text(str(error)))
    except (KeyboardInterrupt, _Warned):
        raise
    except BaseException as error:
        if from_r(request["debug"]):
            return _failure("InternalError", traceback.format_exc())
        kind = type(error).__name__
        return _failure(
            "InternalError",
            f"dpreg failed in Python with {kind}, whose text is withheld since it may hold cells "
            "of the table. The curator sees it after options(dpreg.debug = TRUE).",
        )


def _declare_only(arguments: dict[str, Any], names: Any) -> None:
    """Leave out of the schema what R does not send, once its names were held against the table."""
    if arguments.get("schema") is not None:
        declared = Schema.from_any(arguments["schema"])
        check_schema_names(declared, [names] if isinstance(names, str) else names or [])
        sent = arguments["data"]
        arguments["schema"] = {name: declared[name] for name in declared if name in sent}


def _kinds(kind: type[DpregError]) -> tuple[str, ...]:
    """Name a class of error and those that it is a case of."""
    named = (base for base in kind.__mro__ if issubclass(base, DpregError))
    return tuple(base.__name__ for base in named if base is not DpregError)


def _failure(kind: str | tuple[str, ...], message: str) -> dict[str, Any]:
    return {"ok": False, "class": kind, "message": message}
