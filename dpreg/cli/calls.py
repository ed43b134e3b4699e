"""Commands that run a public call: checked, charged, computed, saved.

Tested in `tests/cli/test_cli.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import click

import dpreg
from dpreg.cli.options import AS_JSON, WITNESS, call_options, call_values
from dpreg.cli.outs import check_outs, ledger_files, table_files
from dpreg.cli.running import printed, say
from dpreg.errors import ArgumentError, DataError
from dpreg.paths import check_writable
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger.handle import Quotation, quote
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.reader import DOUBT, showing

__all__ = ["CALLS", "Call", "add_calls", "opened", "show_price", "told"]

CALLS: Final[dict[str, Callable[..., Any]]] = {
    "select": dpreg.dp_select,
    "ols": dpreg.dp_ols,
    "glm": dpreg.dp_glm,
    "mean": dpreg.dp_mean,
    "quantile": dpreg.dp_quantile,
    "histogram": dpreg.dp_histogram,
    "suffstats": dpreg.dp_suffstats,
}
"""The name of the command, and what it runs."""

OF_FORMULA: Final = ("select", "ols", "glm")


@dataclass(frozen=True, slots=True)
class Call:
    """One call, ready to be checked or run.

    Attributes
    ----------
    name : str
        Of `CALLS`.
    arguments : mapping
        Of the public call, the table included; without `budget`.
    out : str or None
        The file for the result.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    out: str | None = None

    def quotation(self, *, doubts: bool = True) -> Quotation:
        """Check the call, and return its price. No row is read.

        The kinds of the table's columns may contradict the schema. That is said on stderr, to the
        curator who runs the command, and nowhere else: kinds may have been inferred from rows.
        Where `doubts` is false the call will say so itself.
        """
        if self.out is not None:
            check_writable(self.out)
        price = quote(CALLS[self.name], **{**self.arguments, "progress": False})
        declared = Schema.from_any(self.arguments.get("schema"))
        for doubt in declared.doubts(as_source(self.arguments["data"])) if doubts else ():
            say(f"{DOUBT} {doubt}")
        return price

    def run(self, ledger: Ledger | None, progress: bool | None) -> Any:
        """Charge, read, release and save; a result that cannot be saved is printed."""
        result = CALLS[self.name](**self.arguments, budget=ledger, progress=progress)
        if self.out is not None:
            try:
                result.save(self.out)
            except DataError:
                say("dpreg: the result could not be saved: it follows on standard output")
                click.echo(result.to_json())
                raise
        return result


def opened(ledger: str | None, analyst: str | None, witness: str | None) -> Ledger | None:
    """Open a ledger for a command."""
    if ledger is None:
        for name, value in (("analyst", analyst), ("witness", witness)):
            if value is not None:
                raise ArgumentError(f"--{name} needs --ledger.")
        return None
    return Ledger.open(ledger, analyst=analyst, witness=witness)


def told(quotation: Quotation, ledger: Ledger | None) -> dict[str, str]:
    """Print a price, and check that the ledger covers it."""
    if ledger is not None:
        ledger.check(quotation.budget, quotation.what, quotation.unit)
    return {"call": quotation.what, **quotation.budget.to_dict(), "protects": quotation.unit}


def add_calls(group: click.Group) -> None:
    """Add a command for each public call."""
    for name, call in CALLS.items():
        group.add_command(_command(name, call))


def _command(name: str, call: Callable[..., Any]) -> click.Command:
    first = (call.__doc__ or "").partition("\n")[0]

    def command(
        ledger: str | None,
        analyst: str | None,
        witness: str | None,
        out: str | None,
        check: bool,
        as_json: bool,
        quiet: bool,
        **given: Any,
    ) -> None:
        if name in OF_FORMULA:
            arguments = {"formula": given.pop("formula"), "data": given.pop("table")}
        else:
            columns = given.pop("columns")
            arguments = {"x": columns if name == "histogram" else list(columns)}
            arguments["data"] = given.pop("table")
        if name == "quantile":
            arguments["q"] = list(given.pop("q"))
        ready = Call(name, arguments | call_values(call, given), out)
        account = opened(ledger, analyst, witness)
        progress = False if quiet else None
        quotation = ready.quotation(doubts=check or not showing(progress))
        if out is not None:
            used = [*table_files(ready.arguments), *ledger_files(ledger, witness)]
            check_outs([out], used)
        price = told(quotation, account)
        if check:
            show_price(price, as_json)
            return
        if account is None:
            say("dpreg: no ledger is charged: nobody adds up what such releases reveal together")
        result = ready.run(account, progress)
        click.echo(result.to_json() if as_json else str(result))

    command.__doc__ = first
    made = call_options(call)(command)
    for option in reversed(_SHARED):
        made = option(made)
    if name == "quantile":
        made = click.option("--q", "q", multiple=True, type=float, required=True, metavar="NUMBER")(
            made
        )
    if name in OF_FORMULA:
        made = click.argument("table")(made)
        made = click.argument("formula")(made)
    else:
        made = click.argument("columns", nargs=1 if name == "histogram" else -1, required=True)(
            made
        )
        made = click.argument("table")(made)
    return click.command(name)(made)


def show_price(price: dict[str, str], as_json: bool) -> None:
    """Print a price."""
    if as_json:
        printed(price)
    else:
        click.echo(f"{price['call']}\n  costs eps = {price['eps']}, delta = {price['delta']}")
        click.echo(f"  protects: {price['protects']}\n  nothing was charged, and no row read")


_SHARED: Final = (
    click.option("--ledger", metavar="PLACE", help="An SQLite file or a postgresql:// address."),
    click.option("--analyst", metavar="NAME", help="Whose part of the ledger is charged."),
    WITNESS,
    click.option("--out", metavar="FILE", help="Save the result here, as JSON."),
    click.option("--check", is_flag=True, help="Check the call, print its cost, and stop."),
    AS_JSON,
    click.option("--quiet", is_flag=True, help="Show no bars."),
)
