"""Names that a field had in dpreg 0.1: they still read, with a warning that gives the new one.

Saved files keep the old names as keys, so that results go on loading in both directions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, TypeVar

__all__ = ["GONE_IN", "old_names", "replaced", "stored"]

GONE_IN: Final = "0.3"
_C = TypeVar("_C", bound=type)
_R = TypeVar("_R")


class _Old:
    """The slot of a field, which warns whoever reads it under its old name."""

    def __init__(self, slot: Any, old: str, new: str) -> None:
        self.slot, self.new = slot, new
        self.__doc__ = f"Old name of `{new}`."
        self._told = f"{old} is now called {new}; the old name goes in dpreg {GONE_IN}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Warn, and read the slot."""
        if instance is None:
            return self
        warnings.warn(self._told, DeprecationWarning, stacklevel=2)
        return self.slot.__get__(instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        """Fill the slot, as the dataclass's constructor does."""
        self.slot.__set__(instance, value)


def old_names(**names: str) -> Callable[[_C], _C]:
    """Mark fields of a dataclass with slots as old names: field to the name to read instead."""

    def mark(kind: _C) -> _C:
        for old, new in names.items():
            setattr(kind, old, _Old(kind.__dict__[old], old, new))
        return kind

    return mark


def stored(result: object, name: str) -> Any:
    """Return what a field holds, whatever it is called now; for the package's own use."""
    for kind in type(result).__mro__:
        found = kind.__dict__.get(name)
        if isinstance(found, _Old):
            return found.slot.__get__(result, type(result))
    return getattr(result, name)


def replaced(result: _R, **changes: Any) -> _R:
    """Return a copy of a result with other values for some fields, as `dataclasses.replace`."""
    kept = {field.name: stored(result, field.name) for field in fields(result)}  # type: ignore[arg-type]
    return type(result)(**{**kept, **changes})
