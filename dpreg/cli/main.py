"""The command's groups, and the commands that are not calls.

How a command ends: what it prints on which stream, and its exit code.

`dpreg ledger`: the account itself.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, Final, NoReturn

import click

import dpreg
from dpreg import errors
from dpreg.cli.calls import OF_FORMULA, add_calls, check_outs, run_batch
from dpreg.cli.options import (
    AS_JSON,
    WITNESS,
    call_options,
    call_values,
    number,
    pairs,
    printed,
    say,
)
from dpreg.errors import ArgumentError, DpregError, DpregWarning, LedgerError
from dpreg.privacy.budget import Budget, exact
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger.chain import PERIODS
from dpreg.results.base import load
from dpreg.results.report import write_report
from dpreg.schema import Schema
from dpreg.sources import as_source

EXIT_CODES: Final = {
    LedgerError: 7,
    errors.BudgetError: 6,
    errors.DataError: 5,
    errors.DatasetError: 5,
    errors.SchemaError: 4,
    errors.FormulaError: 3,
    DpregError: 2,
}
_UNFORESEEN: Final = 1
_INTERRUPTED: Final = 130


def ended(command: Callable[[], object]) -> NoReturn:
    """Run a command and leave the process with its exit code.

    Of an unexpected error only the kind is shown: its text or traceback could quote a row.
    """
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", DpregWarning)
    told: set[str] = set()  # a call warns when it is checked, and again when it is run

    def tell(text: str) -> None:
        if text not in told:
            told.add(text)
            say(f"dpreg: warning: {text}")

    warnings.showwarning = lambda text, *_, **__: tell(str(text))
    try:
        command()
        sys.stdout.flush()
        sys.exit(0)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.ClickException as fault:
        fault.show()
        sys.exit(fault.exit_code)
    except (KeyboardInterrupt, click.Abort):
        say("dpreg: interrupted; what was charged stays charged")
        sys.exit(_INTERRUPTED)
    except DpregError as fault:
        say(f"dpreg: {fault}")
        sys.exit(next(code for kind, code in EXIT_CODES.items() if isinstance(fault, kind)))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_UNFORESEEN)
    except Exception as fault:
        say(f"dpreg: failed unexpectedly ({type(fault).__name__}); what was charged stays charged")
        sys.exit(_UNFORESEEN)


@click.group()
def ledger() -> None:
    """Make, show and check ledgers: an SQLite file or a postgresql:// address."""


@ledger.command()
@click.argument("place")
@click.option("--eps", required=True, help="The data set's cap.")
@click.option("--delta", default="0", show_default=True)
@click.option("--analyst-eps", help="A cap for each analyst.")
@click.option("--analyst-delta", default="0", show_default=True)
@click.option(
    "--analyst", "named", multiple=True, metavar="NAME=EPS[,DELTA]",
    help="A cap for one analyst; only analysts who are named may charge. Repeatable.",
)  # fmt: skip
@click.option("--period-eps", help="A cap for each period.")
@click.option("--period-delta", default="0", show_default=True)
@click.option("--period", type=click.Choice(PERIODS), default="month", show_default=True)
@WITNESS
def init(place: str, named: tuple[str, ...], period: str, witness: str | None, **caps: Any) -> None:
    """Make a new ledger, and print its first head."""
    analysts: Any = _cap(caps, "analyst_")
    if named:
        if analysts is not None:
            raise ArgumentError("--analyst and --analyst-eps cannot be used together.")
        analysts = {}
        for name, text in pairs(named, "--analyst").items():
            one, _, other = text.partition(",")
            analysts[name] = Budget(exact(one, "eps"), exact(other or 0, "delta"))
    every = _cap(caps, "period_")
    try:
        Ledger.open(place, read_only=True)
    except LedgerError:
        made = Ledger(
            _cap(caps),
            place,
            analyst_cap=analysts,
            period_cap=every,
            period=period,
            witness=witness,
        )
        click.echo(made.head)
        return
    raise LedgerError("there is already a ledger here: nothing was changed")


@ledger.command("show")
@click.argument("place")
@AS_JSON
def show_ledger(place: str, as_json: bool) -> None:
    """Show caps, what is spent, and the entries."""
    account = Ledger.open(place, read_only=True)
    if as_json:
        told = account.export()
        printed({**told, "spent": account.spent.to_dict(), "left": account.remaining.to_dict()})
        return
    click.echo(f"cap    {account.cap}\nspent  {account.spent}\nleft   {account.remaining}")
    caps = account.caps
    if isinstance(caps.analyst, Budget):
        click.echo(f"each analyst  {caps.analyst}")
    elif caps.analyst is not None:
        for name, cap in caps.analyst.items():
            click.echo(f"analyst {name}  {cap}")
    if caps.period is not None:
        click.echo(f"each {caps.every}  {caps.period}")
    for entry in account.entries:
        who = f"  {entry.analyst}" if entry.analyst else ""
        click.echo(f"{entry.number:>6}  {entry.when}  {entry.budget}{who}  {entry.what}")
    click.echo(f"head   {account.head}")


@ledger.command()
@click.argument("place")
def export(place: str) -> None:
    """Print caps, entries and their heads as JSON."""
    printed(Ledger.open(place, read_only=True).export())


@ledger.command()
@click.argument("place")
@click.option("--head", help="A head that you kept: the ledger must still hold it.")
@click.option("--result", metavar="FILE", help="A saved result: its entry must still be there.")
@WITNESS
@AS_JSON
def verify(
    place: str, head: str | None, result: str | None, witness: str | None, as_json: bool
) -> None:
    """Go through the whole ledger: hashes, sums, caps, and a head kept elsewhere.

    Without a kept head or a witness this finds only damage and careless edits: the chain has no
    key, and anyone who can write to the ledger can recompute it.
    """
    account = Ledger.open(place, witness=witness, read_only=True)
    if result is not None:
        record = load(result).record
        if record is None or record.ledger is None:
            raise ArgumentError("this result was not charged to a ledger.")
        if record.ledger.ledger != account.identity:
            raise LedgerError("this result was charged to a different ledger")
        account.verify(record.ledger.head)
    found = account.verify(head)
    if as_json:
        told = {"head": found.head, "entries": found.entries, "spent": found.spent.to_dict()}
        printed(told)
    else:
        click.echo(f"whole: {found.entries} entries, {found.spent} spent\nhead   {found.head}")


@ledger.command()
@click.argument("place")
@click.option("--reason", required=True, help="Why the ledger is here now; recorded in it.")
@WITNESS
def adopt(place: str, reason: str, witness: str | None) -> None:
    """Allow charges to a ledger that was moved or copied. Destroy the other copy first.

    With --witness that becomes the ledger's witness. A ledger that is behind it has lost entries:
    they are given up, and the ledger says so from then on.
    """
    click.echo(Ledger.open(place).adopt(reason, witness=witness).head)


def _cap(caps: dict[str, Any], whose: str = "") -> Budget | None:
    """Return a cap, or None where none was given."""
    eps, delta = caps[f"{whose}eps"], caps[f"{whose}delta"]
    return None if eps is None else Budget(exact(eps, "eps"), exact(delta, "delta"))


_EPILOG = (
    "Exit codes: 0 done; 1 unforeseen; 2 option or argument; 3 formula; 4 schema; 5 table or file; "
    "6 budget; 7 ledger; 130 interrupted."
)


@click.group(epilog=_EPILOG)
@click.version_option(dpreg.__version__, prog_name="dpreg")
def commands() -> None:
    """Differentially private statistics: check, charge, release, report."""


@commands.command()
@click.argument("table")
def skeleton(table: str) -> None:
    """Print a schema to fill in: names and kinds of the table's columns, and no value."""
    click.echo(Schema.skeleton(as_source(table)).to_toml(), nl=False)


@commands.command()
@click.argument("schema")
@click.option("-n", "rows", type=int, default=100, show_default=True, help="How many rows.")
@click.option("--formula", metavar="TEXT", help="Only the columns that it names.")
@click.option("--seed", type=int, metavar="NUMBER", help="Makes the rows the same again.")
def dummy(schema: str, rows: int, formula: str | None, seed: int | None) -> None:
    """Print made-up rows, as CSV, from a schema alone: for writing and trying code."""
    made = Schema.from_any(schema).sample(rows, formula=formula, seed=seed)
    click.echo(made.to_csv(), nl=False)


@commands.command()
@click.pass_context
@click.argument("formula")
@click.argument("data", metavar="TABLE")
@click.option("--schema", metavar="FILE", help="Bounds and levels, as TOML or JSON.")
@click.option("--eps", required=True)
@click.option("--delta", default="0", show_default=True)
@click.option("--call", "name", type=click.Choice(OF_FORMULA), default="select", show_default=True)
@click.option("--ledger", metavar="PLACE", help="Also check that it covers the cost.")
@click.option("--analyst", metavar="NAME")
@WITNESS
@AS_JSON
def check(context: click.Context, /, name: str, **given: Any) -> None:
    """Check a call and print its cost. No row is read, and nothing is charged.

    For other calls, and with their options: `dpreg mean TABLE COLUMN ... --check`.
    """
    context.invoke(commands.commands[name], **given, check=True)


@commands.command()
@click.option("--effect", "effects", multiple=True, metavar="NAME=NUMBER")
@click.option("--formula", metavar="TEXT", help="With it, units and candidates are the schema's.")
@call_options(dpreg.plan)
def plan(effects: tuple[str, ...], formula: str | None, **given: Any) -> None:
    """Predict the chance of finding effects, or coefficients' errors, before there are data."""
    named = {name: number(text, "--effect") for name, text in pairs(effects, "--effect").items()}
    click.echo(str(dpreg.plan(named or None, formula=formula, **call_values(dpreg.plan, given))))


@commands.command("plan-glm")
@click.argument("formula")
@call_options(dpreg.plan_glm)
def plan_glm(formula: str, **given: Any) -> None:
    """Predict the standard errors of `dp_glm`, or the rows or eps that they need, without data."""
    click.echo(str(dpreg.plan_glm(formula, **call_values(dpreg.plan_glm, given))))


@commands.command()
@click.argument("result")
@AS_JSON
@click.option("--full", is_flag=True, help="All tables, the budget and every note.")
def show(result: str, as_json: bool, full: bool) -> None:
    """Print a saved result, on one screen."""
    found = load(result)
    click.echo(found.to_json() if as_json else str(found.summary(full=full)))


@commands.command()
@click.argument("result")
@click.option("-o", "--out", required=True, metavar="FILE", help="The HTML file.")
def report(result: str, out: str) -> None:
    """Write a report of a saved result: one HTML file, for the reviewer and the reader."""
    check_outs([out], [("the saved result", result)])
    write_report(load(result), out)


@commands.command()
@click.argument("file")
@click.option("--check", is_flag=True, help="Check all calls, print the cost, and stop.")
@click.option("--quiet", is_flag=True, help="Show no bars.")
@AS_JSON
def batch(file: str, check: bool, quiet: bool, as_json: bool) -> None:
    """Run the calls of a TOML file: all are checked before the first is charged."""
    run_batch(file, check=check, as_json=as_json, quiet=quiet)


commands.add_command(ledger)
add_calls(commands)


def main() -> None:
    """Run the command and leave the process."""
    ended(lambda: commands.main(prog_name="dpreg", standalone_mode=False))
