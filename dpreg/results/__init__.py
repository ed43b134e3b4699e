"""Frozen results: released numbers and public facts, never rows."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


def packaged(name: str) -> str:
    """Return the text of a file that lies here."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


@cache
def catalogue(name: str) -> Mapping[str, Any]:
    """Return what a TOML file that lies here holds."""
    return tomllib.loads(packaged(name))
