"""The command's groups, and the commands that are not calls.

Tested in `tests/cli/test_cli.py`.
"""

from __future__ import annotations

from typing import Any

import click

import dpreg
from dpreg.cli.batch import run_batch
from dpreg.cli.calls import OF_FORMULA, Call, add_calls, opened, show_price, told
from dpreg.cli.ledgers import ledger
from dpreg.cli.options import AS_JSON, WITNESS, call_options, call_values, number, pairs
from dpreg.cli.outs import check_outs
from dpreg.cli.running import ended
from dpreg.reporting import write_report
from dpreg.results.base import load
from dpreg.schema import Schema
from dpreg.sources import as_source

__all__ = ["main"]

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
@click.argument("formula")
@click.argument("table")
@click.option("--schema", metavar="FILE", help="Bounds and levels, as TOML or JSON.")
@click.option("--eps", required=True)
@click.option("--delta", default="0", show_default=True)
@click.option("--call", "name", type=click.Choice(OF_FORMULA), default="select", show_default=True)
@click.option("--ledger", "place", metavar="PLACE", help="Also check that it covers the cost.")
@click.option("--analyst", metavar="NAME")
@WITNESS
@AS_JSON
def check(
    formula: str,
    table: str,
    schema: str | None,
    eps: str,
    delta: str,
    name: str,
    place: str | None,
    analyst: str | None,
    witness: str | None,
    as_json: bool,
) -> None:
    """Check a call and print its cost. No row is read, and nothing is charged.

    For other calls, and with their options: `dpreg mean TABLE COLUMN ... --check`.
    """
    arguments = {"formula": formula, "data": table, "schema": schema, "eps": eps, "delta": delta}
    price = told(Call(name, arguments).quotation(), opened(place, analyst, witness))
    show_price(price, as_json)


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
