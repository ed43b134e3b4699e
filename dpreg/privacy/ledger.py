"""A ledger: one cap for many releases, kept by locks, saved exactly, charged before any draw.

A `Budget` is a value; a `Ledger` is the account it is taken from. Its rules are few:

- A charge that does not fit is a BudgetError, and nothing has been read or drawn yet.
- A charge that fits is on disk (written, synced, renamed into place) before `charge` returns. A
  crash between the charge and the release loses budget, never privacy. There are no refunds.
- All arithmetic is exact, in memory and on disk.
- However many threads and processes share it, their charges never exceed the cap.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from dpreg.errors import ArgumentError, BudgetError
from dpreg.privacy.budget import Budget, exact, together

__all__ = ["Entry", "Ledger", "charge"]

_FORMAT: Final = 1
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge: what for, how much, when (UTC, ISO 8601), and whom it protects.

    `unit` is the neighbour relation and the rows a person may own; "" where the caller left it out.
    """

    what: str
    budget: Budget
    when: str
    unit: str = ""


class Ledger:
    """An account of privacy budget with a cap.

    Parameters
    ----------
    cap : Budget, number or str
        The most that may ever be charged. A number is an eps with delta = 0.
    path : path-like, optional
        A JSON file. If it exists its entries are taken up and its cap must equal `cap`; if not it
        is made. Without a path the ledger lives in this process alone, and neither pickles nor
        copies, for each copy would spend the same budget again.

    Attributes
    ----------
    cap : Budget
    path : Path or None

    Raises
    ------
    BudgetError
        If the file is damaged or has another cap.

    Notes
    -----
    Within a process a threading lock guards each charge. With a path, processes exclude each other
    by `flock` on the file's companion ``<name>.lock``, which is never removed (the ledger file
    itself is replaced by each charge, so a lock on it would guard a file that is gone). Every
    charge reads the file anew under the lock. `flock` is advisory and POSIX: on Windows a ledger
    with a path is refused, one without works. On network file systems it is as good as their
    `flock`.
    """

    def __init__(self, cap: Budget | object, path: str | os.PathLike[str] | None = None) -> None:
        self.cap = cap if isinstance(cap, Budget) else Budget(exact(cap, "cap", BudgetError))
        # Symbolic links are followed, so that every name of the account is one account.
        self.path = None if path is None else Path(path).resolve()
        self._lock = threading.RLock()
        self._owner = os.getpid()
        self._entries: tuple[Entry, ...] = ()
        if self.path is not None:
            if sys.platform == "win32":
                raise BudgetError("a ledger with a path needs POSIX file locks; leave path out")
            with self._locked():
                if not self.path.exists():
                    self._write(())
                elif self.path.stat().st_nlink > 1:
                    raise BudgetError(
                        "the ledger's file has a second name (a hard link), whose account would "
                        "part from this one: remove the link"
                    )

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """Open a saved ledger with the cap that its file holds."""
        where = Path(path)
        if not where.is_file():
            raise BudgetError("there is no ledger at this path: make it with Ledger(cap, path)")
        return cls(_parse(where.read_text(encoding="utf-8"))[0], where)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges so far, in order, those of other processes included."""
        with self._locked():
            return self._entries

    @property
    def spent(self) -> Budget:
        """The exact sum of all charges."""
        return together(entry.budget for entry in self.entries)

    @property
    def remaining(self) -> Budget:
        """The cap less what is spent."""
        return self.cap - self.spent

    def charge(self, budget: Budget, what: str, unit: str = "") -> Entry:
        """Take `budget` from the account, for good, before anything is read or drawn.

        Parameters
        ----------
        budget : Budget
        what : str
            What it pays for: public text, kept in the file.
        unit : str, optional
            Whom the charge protects, such as "replace-one, 1 row a person". Epsilons of different
            units do not add up to a promise to anyone, so one ledger keeps to one unit.

        Returns
        -------
        Entry

        Raises
        ------
        BudgetError
            If the charge does not fit, or its unit is not the account's; the account is then as it
            was.
        """
        if not isinstance(budget, Budget):
            raise BudgetError("charge takes a Budget")
        with self._locked():
            for other in {entry.unit for entry in self._entries} - {"", unit}:
                if unit:
                    raise BudgetError(
                        f"{what} protects by {unit}, and this ledger's charges by {other}: such "
                        "epsilons do not add up; keep a ledger for each"
                    )
            spent = together(entry.budget for entry in self._entries)
            left = self.cap - spent
            if not left.covers(budget):
                raise BudgetError(
                    f"{what} asks for {budget}, but only {left} of {self.cap} is left"
                )
            entry = Entry(str(what), budget, datetime.now(UTC).isoformat(timespec="seconds"), unit)
            self._write((*self._entries, entry))
            return entry

    def spend(self, budget: Budget, what: str, release: Callable[[], _T]) -> _T:
        """Charge, then call `release` and return what it returns.

        If `release` raises, the charge stands: it may have read rows, and that it failed may say
        something about them.
        """
        self.charge(budget, what)
        return release()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold both locks, with the entries as they are on disk."""
        with self._lock:
            if self.path is None:
                if os.getpid() != self._owner:
                    raise BudgetError("this ledger belongs to another process: give it a path")
                yield
                return
            with _file_lock(self.path):
                if self.path.exists():
                    cap, self._entries = _parse(self.path.read_text(encoding="utf-8"))
                    if cap != self.cap:
                        raise BudgetError(f"the ledger at this path has the cap {cap}")
                elif self._entries:
                    raise BudgetError("the ledger's file is gone, and with it what was spent")
                yield

    def _write(self, entries: tuple[Entry, ...]) -> None:
        if self.path is not None:
            _replace(self.path, _format(self.cap, entries))
        self._entries = entries

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by path: the copy is another handle on the same account."""
        if self.path is None:
            raise BudgetError("a ledger without a path cannot be copied or pickled: give it a path")
        return Ledger, (self.cap, str(self.path))

    def __repr__(self) -> str:
        """Show the account's state."""
        return f"<Ledger: {self.spent} spent of {self.cap}>"


def charge(
    ledger: Ledger | None, budget: Budget, what: str, neighbors: str, contributions: int
) -> None:
    """Charge the ledger of a public call, if it has one, naming whom the charge protects."""
    if ledger is None:
        return
    if not isinstance(ledger, Ledger):
        raise ArgumentError(
            f"budget must be a Ledger, such as Ledger(1); got {type(ledger).__name__}."
        )
    rows = "1 row" if contributions == 1 else f"{contributions} rows"
    ledger.charge(budget, what, f"{neighbors}, {rows} a person")


def _format(cap: Budget, entries: tuple[Entry, ...]) -> str:
    told = [{"what": e.what, **e.budget.to_dict(), "when": e.when, "unit": e.unit} for e in entries]
    return json.dumps({"dpreg_ledger": _FORMAT, "cap": cap.to_dict(), "entries": told}, indent=1)


def _parse(text: str) -> tuple[Budget, tuple[Entry, ...]]:
    """Read a ledger's file; whatever is wrong with it is one error, and nothing is charged."""
    try:
        saved = json.loads(text)
        if saved["dpreg_ledger"] != _FORMAT:
            raise BudgetError("the ledger's file was written by another version of dpreg")
        entries = tuple(
            Entry(
                str(line["what"]),
                Budget.from_dict(line),
                str(line["when"]),
                str(line.get("unit", "")),
            )
            for line in saved["entries"]
        )
        return Budget.from_dict(saved["cap"]), entries
    except (KeyError, TypeError, json.JSONDecodeError) as fault:
        raise BudgetError("the ledger's file is damaged; no charge is possible") from fault


def _replace(path: Path, text: str) -> None:
    """Put `text` at `path` whole or not at all, and on the disk when this returns."""
    fresh = path.with_name(path.name + ".new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


if sys.platform == "win32":

    @contextmanager
    def _file_lock(path: Path) -> Iterator[None]:
        raise BudgetError("a ledger with a path needs POSIX file locks")
        yield

else:
    import fcntl

    @contextmanager
    def _file_lock(path: Path) -> Iterator[None]:
        """Hold the exclusive lock of the ledger at `path`; each handle locks for itself."""
        lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # a fork in between may hold a copy of the handle
            os.close(lock)
