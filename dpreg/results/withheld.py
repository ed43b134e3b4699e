"""Attributes that statistics packages have and a private release cannot: each says why.

``withheld.toml`` has the names of each class, by their reason.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import TypeVar

from dpreg.errors import NotReleased

__all__ = ["NeverReleased", "Withheld", "WithoutRows", "withholding"]

_T = TypeVar("_T")


class Withheld:
    """An attribute that is named only to say why it is not released.

    Reading it raises `NotReleased`, an AttributeError, so `hasattr` is False.
    """

    __slots__ = ("name", "reason")

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason

    def __get__(self, instance: object, owner: type | None = None) -> Withheld:
        """Raise, unless looked up on the class."""
        if instance is None:
            return self
        raise NotReleased(f"{self.name} is not released: {self.reason}.")


def withholding(owner: type[_T]) -> type[_T]:
    """Withhold the names that ``withheld.toml`` lists for a class."""
    text = resources.files("dpreg.results").joinpath("withheld.toml").read_text(encoding="utf-8")
    for entry in tomllib.loads(text)[owner.__name__]:
        for name in entry["names"].split():
            setattr(owner, name, Withheld(name, entry["reason"]))
    return owner


@withholding
class NeverReleased:
    """What statsmodels' results of a linear model offer and dpreg's never will."""

    __slots__ = ()


@withholding
class WithoutRows:
    """What statsmodels' models hold and the public part of one does not: the rows."""

    __slots__ = ()
