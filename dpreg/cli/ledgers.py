"""`dpreg ledger`: the account itself.

Tested in `tests/cli/test_cli.py`.
"""

from __future__ import annotations

from typing import Any

import click

from dpreg.cli.options import AS_JSON, WITNESS, pairs
from dpreg.cli.running import printed
from dpreg.errors import ArgumentError, LedgerError
from dpreg.privacy.budget import Budget, exact
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger.chain import PERIODS
from dpreg.results.base import load

__all__ = ["ledger"]


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
def init(
    place: str,
    eps: str,
    delta: str,
    named: tuple[str, ...],
    period: str,
    witness: str | None,
    **caps: Any,
) -> None:
    """Make a new ledger, and print its first head."""
    analysts: Any = None
    if named:
        if caps["analyst_eps"] is not None:
            raise ArgumentError("--analyst and --analyst-eps cannot be used together.")
        analysts = {}
        for name, text in pairs(named, "--analyst").items():
            one, _, other = text.partition(",")
            analysts[name] = Budget(exact(one, "eps"), exact(other or 0, "delta"))
    elif caps["analyst_eps"] is not None:
        analysts = _budget(caps["analyst_eps"], caps["analyst_delta"])
    each = caps["period_eps"]
    every = None if each is None else _budget(each, caps["period_delta"])
    try:
        Ledger.open(place, read_only=True)
    except LedgerError:
        made = Ledger(
            *(_budget(eps, delta), place),
            analyst_cap=analysts,
            period_cap=every,
            period=period,
            witness=witness,
        )
        click.echo(made.head)
        return
    raise LedgerError("there is already a ledger here: nothing was changed")


@ledger.command()
@click.argument("place")
@AS_JSON
def show(place: str, as_json: bool) -> None:
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


def _budget(eps: str, delta: str) -> Budget:
    return Budget(exact(eps, "eps"), exact(delta, "delta"))
