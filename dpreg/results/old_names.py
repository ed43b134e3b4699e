"""Names that fields had in dpreg 0.1: they still read, with a warning that gives the new one.

Saved files keep the old names as keys, so that results go on loading in both directions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["ERRORS", "GONE_IN", "old_names"]

GONE_IN: Final = "0.3"
ERRORS: Final = {
    "se_sampling": ("sampling_errors", "bse_sampling"),
    "se_privacy": ("privacy_errors", "bse_privacy"),
}
"""The old names of standard errors, in whatever has some."""

_C = TypeVar("_C", bound=type)


def old_names(**names: tuple[str, str]) -> Callable[[_C], _C]:
    """Give a class of results its old names: each the field that it reads, and its new name.

    The class's `saved_as` says by what key each such field is saved.
    """

    def mark(kind: _C) -> _C:
        for old, (field, new) in names.items():
            setattr(kind, old, property(_reader(old, field, new, _annotation(kind, field))))
        kind.saved_as = {field: old for old, (field, _) in names.items()}  # type: ignore[attr-defined]
        return kind

    return mark


def _annotation(kind: type, field: str) -> object:
    """Return the type that a class, or one it comes from, declares for a field."""
    declared = (vars(base).get("__annotations__", {}) for base in kind.__mro__)
    return next(names[field] for names in declared if field in names)


def _reader(old: str, field: str, new: str, annotation: object) -> Callable[[object], Any]:
    told = f"{old} is now called {new}; the old name will be removed in dpreg {GONE_IN}"

    def read(result: object) -> Any:
        warnings.warn(told, DeprecationWarning, stacklevel=2)
        return getattr(result, field)

    read.__doc__ = f"Old name of `{new}`."
    read.__annotations__["return"] = annotation
    return read
