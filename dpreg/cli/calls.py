"""Commands that run a public call: checked, charged, computed, saved.

Files for results: never one that the command reads or keeps its account in.

A batch: several calls from one file, all checked before the first is charged.
"""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

import dpreg
from dpreg.cli.options import AS_JSON, WITNESS, call_options, call_values, printed, say
from dpreg.errors import ArgumentError, BudgetError, DataError, shown
from dpreg.options import RETIRED
from dpreg.paths import check_writable, identity, read_text
from dpreg.privacy.budget import Budget, exact, together
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger.handle import Quotation, quote
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.files import check_not_data, files_of
from dpreg.sources.reader import DOUBT, showing

Named = tuple[str, str]
"""What a file is to a command, and its path."""

_BESIDE = ("", "-wal", "-shm")  # what a ledger's file comes with


def check_outs(outs: Iterable[str], used: Iterable[Named]) -> None:
    """Refuse files for results that would replace each other or what is used, or join a table.

    Links are followed, since writing follows them: two names may be one file.

    Parameters
    ----------
    outs : iterable of str
    used : iterable of (str, str)

    Raises
    ------
    ArgumentError
    """
    taken = {_identity(path): what for what, path in used}
    for out in outs:
        here = _identity(out)
        if here in taken:
            raise ArgumentError(
                f"out {os.path.basename(out)!r} is also {taken[here]}, and would replace it: name "
                "another file"
            )
        check_not_data(out)
        taken[here] = "the out of another call"


def ledger_files(place: str | None, witness: str | None = None) -> Iterator[Named]:
    """Name a ledger's file, its witness's, and those that the database keeps beside them."""
    for name, one in (("ledger", place), ("witness", witness)):
        if one is not None and "://" not in one:
            for ending in _BESIDE:
                what = f"a file of the {name}'s" if ending else f"the {name}"
                yield what, os.path.realpath(one) + ending


def table_files(arguments: dict[str, Any]) -> Iterator[Named]:
    """Name the files that a call reads: the table's, and the schema's."""
    for path in files_of(arguments["data"]):
        yield "a file of the table", path
    if isinstance(arguments.get("schema"), str):
        yield "the schema", arguments["schema"]


def _identity(path: str) -> object:
    """Tell files apart: by the system's number where there is one, for names may differ in case."""
    place = os.path.realpath(path)
    try:
        return identity(os.stat(place))
    except OSError:
        return os.path.normcase(place)


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


def checked(
    calls: Sequence[Call],
    told: Mapping[str, Any],
    used: Iterable[Named] = (),
    *,
    what: str = "",
    doubts: bool,
) -> tuple[Ledger | None, Budget, list[Quotation]]:
    """Check calls, their files, and what they cost together, before the first is charged.

    Parameters
    ----------
    calls : sequence of Call
    told : mapping
        What there is of ledger, analyst, witness, and of eps and delta, a cap.
    used : iterable of (str, str)
        Further files that no result may replace.
    what : str
        Names all calls together in errors; one alone has its own name.
    doubts : bool
        As for `Call.quotation`.

    Returns
    -------
    ledger : Ledger or None
    total : Budget
    quotations : list of Quotation
    """
    quotations = [call.quotation(doubts=doubts) for call in calls]
    place, analyst, witness = (told.get(name) for name in ("ledger", "analyst", "witness"))
    for name, value in (("analyst", analyst), ("witness", witness)):
        if place is None and value is not None:
            raise ArgumentError(f"--{name} needs --ledger.")
    ledger = None if place is None else Ledger.open(place, analyst=analyst, witness=witness)
    read = [file for call in calls for file in table_files(call.arguments)]
    outs = [call.out for call in calls if call.out is not None]
    check_outs(outs, [*read, *ledger_files(place, witness), *used])
    total = together(quotation.budget for quotation in quotations)
    if "eps" in told:
        cap = Budget(exact(told["eps"], "eps"), exact(told.get("delta", 0), "delta"))
        if not cap.covers(total):
            raise BudgetError(
                f"{what} costs {total}, and its own cap is {cap}: nothing was charged"
            )
    units = {quotation.unit for quotation in quotations}
    if len(units) > 1:
        raise BudgetError(
            f"{what}'s calls are charged under {' and under '.join(sorted(units))}: such epsilons "
            "do not add up; nothing was charged"
        )
    if ledger is not None:
        ledger.check(total, what or quotations[0].what, units.pop())
    return ledger, total, quotations


def add_calls(group: click.Group) -> None:
    """Add a command for each public call."""
    for name, call in CALLS.items():
        group.add_command(_command(name, call))


def _command(name: str, call: Callable[..., Any]) -> click.Command:
    def command(out: str | None, **given: Any) -> None:
        check, as_json, quiet = map(given.pop, ("check", "as_json", "quiet"))
        told = {one: given.pop(one) for one in ("ledger", "analyst", "witness")}
        progress = False if quiet else None
        ready = Call(name, call_values(call, given), out)
        account, _, quotations = checked([ready], told, doubts=check or not showing(progress))
        if check:
            show_price(quotations[0], as_json)
            return
        if account is None:
            say("dpreg: no ledger is charged: nobody adds up what such releases reveal together")
        result = ready.run(account, progress)
        click.echo(result.to_json() if as_json else str(result))

    command.__doc__ = (call.__doc__ or "").partition("\n")[0]
    table = click.argument("data", metavar="TABLE")
    places = [click.argument("formula"), table]
    if name not in OF_FORMULA:
        many, shape = (1, "COLUMNS") if name == "histogram" else (-1, "COLUMNS...")
        places = [table, click.argument("x", metavar=shape, nargs=many, required=True)]
    made = call_options(call)(command)
    for decorate in reversed((*places, *_SHARED)):
        made = decorate(made)
    return click.command(name)(made)


def show_price(quoted: Quotation, as_json: bool) -> None:
    """Print a price."""
    cost = quoted.budget.to_dict()
    if as_json:
        printed({"call": quoted.what, **cost, "protects": quoted.unit})
    else:
        click.echo(f"{quoted.what}\n  costs eps = {cost['eps']}, delta = {cost['delta']}")
        click.echo(f"  protects: {quoted.unit}\n  nothing was charged, and no row read")


_SHARED: Final = (
    click.option("--ledger", metavar="PLACE", help="An SQLite file or a postgresql:// address."),
    click.option("--analyst", metavar="NAME", help="Whose part of the ledger is charged."),
    WITNESS,
    click.option("--out", metavar="FILE", help="Save the result here, as JSON."),
    click.option("--check", is_flag=True, help="Check the call, print its cost, and stop."),
    AS_JSON,
    click.option("--quiet", is_flag=True, help="Show no bars."),
)


_PLACES: Final = ("table", "schema", "ledger", "witness", "out")
_OF_BATCH: Final = (*_PLACES[:4], "analyst", "eps", "delta")


def run_batch(path: str, *, check: bool, as_json: bool, quiet: bool) -> None:
    """Run the calls of a TOML file in order.

    The file says what the calls share, and what each does::

        table = "houses.parquet"
        schema = "schema.toml"
        ledger = "houses.db"
        eps = "1"                      # the most that all calls together may cost

        [[call]]
        do = "select"
        formula = "price ~ bsqft + lat"
        eps = "0.6"
        out = "selection.json"

        [[call]]
        do = "mean"
        x = ["price"]
        eps = "0.2"
        out = "mean.json"

    Options of a method or a family are a table: ``[call.method]``, ``name = "pcls"``,
    ``radius = 2``. Names of files are relative to the batch file. Every call is checked, and the
    sum of their costs compared with the batch's and the ledger's caps, before the first is charged.
    """
    shared, calls = _read(path)
    progress = False if quiet else None
    doubts = check or not showing(progress)
    used = [("the batch", path)]
    ledger, total, _ = checked(calls, shared, used, what="the batch", doubts=doubts)
    say(f"dpreg: {len(calls)} calls checked; together they cost {total}")
    done = []
    if not check:
        for call in calls:
            result = call.run(ledger, progress)
            done.append(
                {"do": call.name, "out": Path(str(call.out)).name, **result.spent.to_dict()}
            )
            say(f"dpreg: {call.name} done, {result.spent}, saved")
    if as_json:
        printed({"cost": total.to_dict(), "done": done})


def _read(path: str) -> tuple[dict[str, Any], list[Call]]:
    try:
        content = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as fault:
        raise ArgumentError(f"the batch is not a TOML file: {fault}") from None
    lines = content.pop("call", [])
    if strange := sorted(set(content) - set(_OF_BATCH)):
        raise ArgumentError(
            f"a batch may say {', '.join(_OF_BATCH)}, and [[call]]; got {shown(strange[0])}"
        )
    if not isinstance(lines, list) or not lines or not all(isinstance(one, dict) for one in lines):
        raise ArgumentError("a batch needs at least one [[call]]")
    shared, *told = (_located(one, Path(path).resolve().parent) for one in (content, *lines))
    return shared, [_call(line, shared, number) for number, line in enumerate(told, 1)]


def _located(told: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return what a batch says, with names of files as seen from its folder."""
    files = [name for name in _PLACES if isinstance(told.get(name), str)]
    return told | {name: str(folder / told[name]) for name in files if "://" not in told[name]}


def _call(line: dict[str, Any], shared: dict[str, Any], number: int) -> Call:
    arguments = {name: shared[name] for name in ("table", "schema") if name in shared} | line
    name, out, table = (arguments.pop(one, None) for one in ("do", "out", "table"))
    if name not in CALLS:
        raise ArgumentError(f"call {number} of the batch: do must be one of {', '.join(CALLS)}")
    if not isinstance(out, str):
        raise ArgumentError(f"call {number} of the batch has no out: name the file for its result")
    if table is None:
        raise ArgumentError(f"call {number} of the batch has no table")
    for reserved in ("budget", "analyst", "progress", "unsafe_seed", "data"):
        if reserved in line:
            raise ArgumentError(f"call {number} of the batch may not say {reserved!r}")
    arguments["data"] = table
    known = inspect.signature(CALLS[name]).parameters
    if strange := sorted({*arguments} - {*known, *RETIRED.get(CALLS[name].__name__, ())}):
        raise ArgumentError(f"call {number} of the batch: {name} has no argument {strange[0]!r}")
    needed = {key for key, one in known.items() if one.default is inspect.Parameter.empty}
    if lacking := sorted(needed - set(arguments)):
        raise ArgumentError(f"call {number} of the batch: {name} needs {lacking[0]!r}")
    return Call(name, arguments, out)
