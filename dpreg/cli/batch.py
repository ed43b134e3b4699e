"""A batch: several calls from one file, all checked before the first is charged.

Tested in `tests/cli/test_cli.py`.
"""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path
from typing import Any, Final

from dpreg.cli.calls import CALLS, Call, opened
from dpreg.cli.outs import check_outs, ledger_files, table_files
from dpreg.cli.running import printed, say
from dpreg.errors import ArgumentError, BudgetError, shown
from dpreg.options import RETIRED
from dpreg.paths import read_text
from dpreg.privacy.budget import Budget, exact, together
from dpreg.sources.reader import showing

__all__ = ["run_batch"]

_PLACES: Final = ("table", "schema", "ledger", "witness")
_SHARED: Final = (*_PLACES, "analyst", "eps", "delta")


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
    cap = None
    if "eps" in shared:
        cap = Budget(exact(shared["eps"], "eps"), exact(shared.get("delta", 0), "delta"))
    progress = False if quiet else None
    doubts = check or not showing(progress)
    quotations = [call.quotation(doubts=doubts) for call in calls]
    place, witness = shared.get("ledger"), shared.get("witness")
    ledger = opened(place, shared.get("analyst"), witness)
    read = [file for call in calls for file in table_files(call.arguments)]
    used = [*read, *ledger_files(place, witness), ("the batch", path)]
    check_outs([str(call.out) for call in calls], used)
    total = together(quotation.budget for quotation in quotations)
    if cap is not None and not cap.covers(total):
        raise BudgetError(f"the batch costs {total}, and its own cap is {cap}: nothing was charged")
    units = {quotation.unit for quotation in quotations}
    if len(units) > 1:
        raise BudgetError(
            f"the batch's calls are charged under {' and under '.join(sorted(units))}: such "
            "epsilons do not add up; nothing was charged"
        )
    if ledger is not None:
        ledger.check(total, "the batch", units.pop())
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
    if strange := sorted(set(content) - set(_SHARED)):
        raise ArgumentError(
            f"a batch may say {', '.join(_SHARED)}, and [[call]]; got {shown(strange[0])}"
        )
    if not isinstance(lines, list) or not lines or not all(isinstance(one, dict) for one in lines):
        raise ArgumentError("a batch needs at least one [[call]]")
    folder = Path(path).resolve().parent
    for name in _PLACES:
        if name in content and "://" not in str(content[name]):
            content[name] = str(folder / str(content[name]))
    calls = [_call(line, content, folder, number) for number, line in enumerate(lines, 1)]
    return content, calls


def _call(line: dict[str, Any], shared: dict[str, Any], folder: Path, number: int) -> Call:
    arguments = dict(line)
    name, out = arguments.pop("do", None), arguments.pop("out", None)
    if name not in CALLS:
        raise ArgumentError(f"call {number} of the batch: do must be one of {', '.join(CALLS)}")
    if not isinstance(out, str):
        raise ArgumentError(f"call {number} of the batch has no out: name the file for its result")
    table = arguments.pop("table", None)
    arguments["data"] = shared.get("table") if table is None else str(folder / str(table))
    if arguments["data"] is None:
        raise ArgumentError(f"call {number} of the batch has no table")
    if "schema" in arguments and isinstance(arguments["schema"], str):
        arguments["schema"] = str(folder / arguments["schema"])
    elif "schema" in shared:
        arguments.setdefault("schema", shared["schema"])
    for reserved in ("budget", "analyst", "progress", "unsafe_seed", "data"):
        if reserved in line:
            raise ArgumentError(f"call {number} of the batch may not say {reserved!r}")
    known = inspect.signature(CALLS[name]).parameters
    if strange := sorted({*arguments} - {*known, *RETIRED.get(CALLS[name].__name__, ())}):
        raise ArgumentError(f"call {number} of the batch: {name} has no argument {strange[0]!r}")
    needed = {key for key, one in known.items() if one.default is inspect.Parameter.empty}
    if lacking := sorted(needed - set(arguments)):
        raise ArgumentError(f"call {number} of the batch: {name} needs {lacking[0]!r}")
    return Call(name, arguments, str(folder / out))
