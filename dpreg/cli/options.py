"""Options of a command, made from the signature and the docstring of the public call it runs.

Tested in `tests/cli/test_cli.py`.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Callable
from typing import Any, Final

import click

from dpreg.api.arguments import paragraphs
from dpreg.errors import ArgumentError, shown
from dpreg.options import RETIRED

OWN: Final = (
    "formula", "x", "data", "estimator", "budget", "analyst", "progress", "unsafe_seed",
    "effects",
)  # fmt: skip
"""Parameters that a command gives itself, or that are not for it."""
TABLES: Final = ("method", "family")
"""Parameters that take an object: on a command line and in a batch a table."""
AS_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
WITNESS: Final = click.option(
    "--witness", metavar="PLACE", help="Where the ledger's last head is kept, too."
)


def call_options(call: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command an option for each of the call's parameters."""
    told = _descriptions(call)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(call).parameters.values()
        for parameter in reversed([p for p in parameters if p.name not in OWN]):
            command = _option(parameter, told.get(parameter.name, ""))(command)
        for name in RETIRED.get(call.__name__, ()):
            flag = "--" + name.replace("_", "-")
            flag = f"{flag}/--no-{name}" if name == "center" else flag
            command = click.option(flag, name, default=None, hidden=True)(command)
        return command

    return decorate


def call_values(call: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the call's own parameters that were given, as the call takes them."""
    values = {}
    for name, parameter in inspect.signature(call).parameters.items():
        value = given.get(name)
        if value is not None and value != ():
            values[name] = _kind(parameter)[1](value)
    retired = (name for name in RETIRED.get(call.__name__, ()) if given.get(name) is not None)
    return values | {name: given[name] for name in retired}


def say(text: str) -> None:
    """Print a message that is not a result."""
    click.echo(text, err=True)


def printed(content: Any) -> None:
    """Print JSON as the command's whole output."""
    click.echo(json.dumps(content, indent=1, allow_nan=False))


def table_of(text: str, option: str) -> Any:
    """Read a name, or TOML's inline table of it and options: ``{name = "pcls", radius = 2}``."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        return tomllib.loads(f"it = {text}")["it"]
    except tomllib.TOMLDecodeError:
        raise ArgumentError(f'{option} takes a name or {{name = "...", ...}} as TOML.') from None


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Read an option NAME=VALUE that may be repeated."""
    found = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise ArgumentError(f"{option} takes NAME=VALUE; got {shown(text)}.")
        found[name] = value
    return found


def _option(parameter: inspect.Parameter, told: str) -> Callable[..., Any]:
    name, kind = parameter.name, str(parameter.annotation)
    flag = "--" + name.replace("_", "-")
    if kind == "bool":
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=told)
    settings = {"help": told, "default": None, "metavar": "TEXT"} | _kind(parameter)[0]
    required = parameter.default is inspect.Parameter.empty
    return click.option(flag, name, required=required, **settings)


def _kind(parameter: inspect.Parameter) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """Return how an option is declared, and what makes of it what the call takes."""
    name, kind = parameter.name, str(parameter.annotation)
    flag, several = f"--{name}", {"multiple": True}
    if name == "bounds":
        return several | {"metavar": "LOWEST,HIGHEST | COLUMN=LOWEST,HIGHEST"}, _bounds
    if name == "q":
        return several | {"type": float, "metavar": "NUMBER"}, list
    if name in TABLES:
        return {
            "metavar": "NAME | {name = NAME, OPTION = VALUE, ...}"
        }, lambda value: None if value == "none" else table_of(value, flag)
    if "Mapping" in kind:
        read = number if "Mapping[str, float]" in kind else lambda text, _: text
        return several | {"metavar": "NAME=NUMBER"}, lambda value: {
            key: read(text, flag) for key, text in pairs(value, flag).items()
        }
    if name == "bins":
        return {"metavar": "NUMBER | EDGE,EDGE,... | private"}, _bins
    if "Iterable" in kind or "Sequence" in kind:
        return several | {"metavar": "NAME"}, tuple
    typed: dict[str, Any] = {"metavar": "FILE"} if name == "schema" else {}
    if kind.startswith(("int", "float")):
        typed = {"type": int if kind.startswith("int") else float, "metavar": "NUMBER"}
    return typed, lambda value: None if value == "none" and "None" in kind else value


def _bins(text: str) -> Any:
    if text == "private":
        return text
    edges = [number(part, "--bins") for part in text.split(",")]
    return edges if len(edges) > 1 else int(edges[0])


def _bounds(texts: tuple[str, ...]) -> Any:
    def pair(text: str) -> tuple[float, ...]:
        return tuple(number(part, "--bounds") for part in text.split(","))

    if len(texts) == 1 and "=" not in texts[0]:
        return pair(texts[0])
    return {name: pair(text) for name, text in pairs(texts, "--bounds").items()}


def number(text: str, option: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(f"{option} needs a number; got {shown(text)}.") from None


def _descriptions(call: Callable[..., Any]) -> dict[str, str]:
    """Return the first sentence about each parameter in a numpydoc docstring."""
    text = inspect.getdoc(call) or ""
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    found = {}
    for name, paragraph in paragraphs(section).items():
        head, _, body = paragraph.partition("\n")
        sentence = re.split(r"(?<=[.;])\s", " ".join(body.split()))[0].rstrip(";")
        kind = head.partition(" : ")[2]
        told = sentence.replace("`", ""), kind if kind.startswith("{") else ""
        found[name] = " ".join(filter(None, told))
    return found
