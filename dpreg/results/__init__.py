"""Frozen results: released numbers and public facts, never rows."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


def packaged(name: str, room: str = __name__) -> str:
    """Return the text of a file that lies in a room, by default here."""
    return resources.files(room).joinpath(name).read_text(encoding="utf-8")


@cache
def catalogue(name: str, room: str = __name__) -> Mapping[str, Any]:
    """Return what a TOML file that lies in a room holds."""
    return tomllib.loads(packaged(name, room))
