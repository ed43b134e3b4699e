"""A ledger restored from a backup is refused; a crash at any point is no alarm."""

import contextlib
import os
import pickle
import shutil
import signal
import sqlite3
import time

import pytest
from oracles import chargers
from oracles.as_user import as_user, reachable
from oracles.forks import CLEAN, FORK, answers

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger.book import Book, Watch
from dpreg.privacy.ledger.handle import witness_at
from dpreg.privacy.ledger.postgres import LostConnection
from dpreg.privacy.ledger.sqlite import SqliteDatabase

TENTH = Budget("0.1")
BEHIND = "not what its witness saw"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture(params=["file", "postgres"])
def witness(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("base")
    (tmp_path / "another disk").mkdir()
    return tmp_path / "another disk" / "witness.db"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "witness.db"


def spend(ledger, times=1):
    for _ in range(times):
        ledger.charge(TENTH, "a share")
    return ledger.head


def restore(backup, path):
    """What `cp backup path` does: the file keeps its number."""
    before = path.stat().st_ino
    path.write_bytes(backup.read_bytes())
    assert path.stat().st_ino == before


def last_seen(witness):
    """Return the last head that a witness saw, as text."""
    kept = witness_at(witness, SqliteDatabase("nothing.db"), False, 30.0)
    with kept.reading(time.monotonic() + 30) as run:
        return str(Watch.of(run).seen)


# Attacks


def test_a_ledger_restored_in_place_is_spent_again_where_nothing_was_kept(path):
    """The attack, and what no file can know of itself: the chain is whole."""
    live = Ledger(1, path)
    spend(live, 2)
    shutil.copy(path, path.with_name("backup.db"))
    head = spend(live, 8)
    restore(path.with_name("backup.db"), path)
    spend(Ledger(1, path), 8)
    assert Ledger.open(path).verify().entries == 10
    with pytest.raises(LedgerError, match="not the one that the head names"):
        Ledger.open(path).verify(head)


@pytest.mark.parametrize("lost", [1, 8])
def test_a_ledger_restored_in_place_is_refused_by_its_witness(path, witness, lost):
    live = Ledger(1, path, witness=witness)
    spend(live, 2)
    shutil.copy(path, path.with_name("backup.db"))
    spend(live, lost)
    restore(path.with_name("backup.db"), path)
    for call in (
        lambda: Ledger(1, path, witness=witness),
        lambda: Ledger.open(path, witness=witness),
        lambda: Ledger.open(path, witness=witness, read_only=True),
        lambda: live.charge(TENTH, "by the old handle"),
    ):
        with pytest.raises(LedgerError, match=rf"{BEHIND}|rolled back"):
            call()
    forgetful = Ledger.open(path)
    with pytest.raises(LedgerError, match="has a witness: to charge it, name"):
        spend(forgetful)
    with pytest.raises(LedgerError, match="has a witness: to charge it, name"):
        forgetful.check(TENTH, "a share")
    assert forgetful.spent == Budget("0.2")  # to look at it, it need not be named


def test_a_ledger_restored_between_two_uses_of_a_handle_is_refused(path, file):
    """The handle saw less than the witness: another process charged since."""
    live = Ledger(1, path, witness=file)
    shutil.copy(path, path.with_name("backup.db"))
    spend(Ledger.open(path, witness=file), 3)
    restore(path.with_name("backup.db"), path)
    for call in (
        lambda: spend(live),
        lambda: live.check(TENTH, "x"),
        lambda: live.spent,
        lambda: live.head,
        lambda: live.entries,
        live.verify,
        live.export,
    ):
        with pytest.raises(LedgerError, match=BEHIND):
            call()
    assert len(Ledger.open(path).entries) == 0


def test_a_ledger_that_grew_again_after_a_restore_is_refused(path, file):
    live = Ledger(1, path, witness=file)
    shutil.copy(path, path.with_name("backup.db"))
    spend(live, 2)
    restore(path.with_name("backup.db"), path)
    shutil.move(file, file.with_name("kept.db"))
    Ledger.open(path).adopt("by whoever restored it")
    spend(Ledger.open(path), 2)
    shutil.move(file.with_name("kept.db"), file)
    with pytest.raises(LedgerError, match=f"{BEHIND}: it has 3 entries, and the witness's entry 2"):
        Ledger.open(path, witness=file)


def test_a_ledger_whose_last_entry_is_another_is_refused(path, file):
    """As many entries as the witness saw, and the last is not the one that it saw."""
    live = Ledger(1, path, witness=file)
    shutil.copy(path, path.with_name("backup.db"))
    spend(live, 2)
    restore(path.with_name("backup.db"), path)
    Ledger.open(path).adopt("by whoever restored it")
    spend(Ledger.open(path))
    with pytest.raises(LedgerError, match=f"{BEHIND}: it has 2 entries, and the witness's entry 2"):
        Ledger.open(path, witness=file)


@pytest.mark.parametrize("how", ["removed", "made anew"])
def test_a_ledger_that_is_gone_is_not_made_anew_beside_its_witness(path, witness, how):
    spend(Ledger(1, path, witness=witness), 3)
    path.unlink()
    if how == "removed":
        with pytest.raises(LedgerError, match="its witness saw 3 entries: restore it"):
            Ledger(1, path, witness=witness)
        assert not path.exists()
        return
    Ledger(1, path)
    with pytest.raises(LedgerError, match=BEHIND):
        Ledger(1, path, witness=witness)


def test_the_limit_a_witness_that_is_restored_too_knows_nothing(path, file):
    """A machine restored from a snapshot: only a head kept elsewhere tells."""
    live = Ledger(1, path, witness=file)
    spend(live, 2)
    for one in (path, file):
        shutil.copy(one, f"{one}.backup")
    head = spend(live, 8)
    for one in (path, file):
        restore(one.with_name(f"{one.name}.backup"), one)
    spend(Ledger.open(path, witness=file), 8)
    again = Ledger.open(path, witness=file)
    assert again.verify().entries == 10
    with pytest.raises(LedgerError, match="not the one that the head names"):
        again.verify(head)


# Crashes


def dies(monkeypatch, role, when):
    """Kill this process right before or right after it commits to the ledger or the witness."""
    honest = SqliteDatabase.writing

    @contextlib.contextmanager
    def writing(database, deadline):
        with honest(database, deadline) as run:
            yield run
            if database.role == role and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
        if database.role == role and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(SqliteDatabase, "writing", writing)


def killed(work):
    process = FORK.Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


CRASHES = [("ledger", "before"), ("ledger", "after"), ("witness", "before"), ("witness", "after")]


@pytest.mark.parametrize(("role", "when"), CRASHES)
@pytest.mark.parametrize("charged", [0, 2])
def test_a_crash_in_a_charge_is_no_alarm_and_hides_no_restore(
    path, file, monkeypatch, role, when, charged
):
    spend(Ledger(1, path, witness=file), charged)
    with monkeypatch.context() as patch:
        dies(patch, role, when)
        killed(lambda: Ledger.open(path, witness=file).charge(TENTH, "cut off"))
    written = charged + ((role, when) != ("ledger", "before"))
    for read_only in (True, False):
        opened = Ledger.open(path, witness=file, read_only=read_only)
        assert opened.verify().entries == written
    shutil.copy(path, path.with_name("backup.db"))
    spend(opened)
    assert last_seen(file) == opened.head
    restore(path.with_name("backup.db"), path)
    with pytest.raises(LedgerError, match=BEHIND):
        Ledger.open(path, witness=file)


@pytest.mark.parametrize(("role", "when"), CRASHES[2:])
def test_a_crash_while_a_ledger_is_made_is_no_alarm(path, file, monkeypatch, role, when):
    with monkeypatch.context() as patch:
        dies(patch, role, when)
        killed(lambda: Ledger(1, path, witness=file))
    assert Ledger.open(path, witness=file, read_only=True).verify().entries == 0
    assert spend(Ledger(1, path, witness=file)) == last_seen(file)


def test_a_crash_between_making_the_witness_and_the_ledger_is_no_alarm(path, file, monkeypatch):
    def fatal(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr("dpreg.privacy.ledger.chain.create", fatal)
        killed(lambda: Ledger(1, path, witness=file))
    assert file.exists()
    assert not path.exists()
    assert spend(Ledger(1, path, witness=file)) == last_seen(file)


@pytest.mark.parametrize(("role", "when"), CRASHES)
def test_a_crash_while_a_loss_is_accepted_accepts_nothing_unrecorded(
    path, file, monkeypatch, role, when
):
    live = Ledger(1, path, witness=file)
    shutil.copy(path, path.with_name("backup.db"))
    spend(live, 3)
    restore(path.with_name("backup.db"), path)
    with monkeypatch.context() as patch:
        dies(patch, role, when)
        killed(lambda: Ledger.open(path).adopt("lost", witness=file))
    recorded = len(Ledger.open(path).entries)
    accepted = (role, when) == ("witness", "after")
    assert recorded == ((role, when) != ("ledger", "before"))
    with contextlib.nullcontext() if accepted else pytest.raises(LedgerError, match=BEHIND):
        Ledger.open(path, witness=file)
    Ledger.open(path).adopt("once more", witness=file)
    assert spend(Ledger.open(path, witness=file)) == last_seen(file)


def test_killed_processes_alarm_nobody_and_every_answer_is_witnessed(path, witness):
    ledger = Ledger(10_000, path, witness=witness)
    heads = chargers.killed(path, 10, witness=witness)
    kept = [entry.head for entry in Ledger.open(path, witness=witness).entries]
    assert set(heads) <= set(kept)
    assert len(kept) <= len(heads) + 10
    seen = last_seen(witness)
    assert kept.index(seen) >= kept.index(heads[-1])
    assert ledger.verify(seen).spent == len(kept) * TENTH
    spend(ledger)


@pytest.mark.parametrize("processes", [8, pytest.param(64, marks=pytest.mark.audit)])
def test_many_processes_charge_the_cap_and_no_more(path, witness, processes):
    cap = processes * 2
    Ledger(cap * TENTH, path, witness=witness)
    start, results = CLEAN.Event(), CLEAN.Queue()
    crowd = [
        CLEAN.Process(target=chargers.some, args=(path, 4, start, results, witness))
        for _ in range(processes)
    ]
    for one in crowd:
        one.start()
    start.set()
    heads = sorted(head for one in answers(results, crowd) for head in one)
    for one in crowd:
        one.join()
    ledger = Ledger.open(path, witness=witness)
    assert heads == sorted(entry.head for entry in ledger.entries)
    assert len(heads) == cap
    assert last_seen(witness) == ledger.head


@pytest.mark.parametrize("looks", ["verify", "open"])
def test_charges_beside_a_reader_are_no_alarm(path, file, monkeypatch, looks):
    """Others charge before and after the reader asks the witness."""
    other = Ledger(5, path, witness=file)
    reader, honest = Ledger.open(path, witness=file), Book.heard

    def heard(book, deadline):
        monkeypatch.undo()
        spend(other)
        found = honest(book, deadline)
        spend(other)
        return found

    monkeypatch.setattr(Book, "heard", heard)
    found = reader.verify() if looks == "verify" else Ledger.open(path, witness=file).verify()
    assert found.entries == 2


def test_a_charge_while_another_opens_a_new_ledger_stays_witnessed(path, file, monkeypatch):
    other, honest = Ledger(5, path, witness=file), Book.introduce

    def introduce(book, deadline):
        monkeypatch.undo()
        spend(other)
        monkeypatch.setattr(
            Book, "heard", lambda *_: Watch(None, "", None)
        )  # what was heard before
        honest(book, deadline)
        monkeypatch.undo()

    monkeypatch.setattr(Book, "introduce", introduce)
    Ledger.open(path, witness=file)
    assert last_seen(file) == other.head


# Accepting a loss, changing the witness


def test_a_loss_is_accepted_on_purpose_and_the_ledger_says_so(path, witness):
    live = Ledger(1, path, witness=witness)
    spend(live, 2)
    shutil.copy(path, path.with_name("backup.db"))
    lost = spend(live, 3)
    restore(path.with_name("backup.db"), path)
    with pytest.raises(LedgerError, match="adopt --witness"):
        Ledger.open(path, witness=witness)
    ledger = Ledger.open(path)
    entry = ledger.adopt("the disk died", witness=witness)
    assert entry.what == f"adopted, given up what its witness saw, {lost}: the disk died"
    assert entry.budget == Budget(0)
    spend(ledger)
    assert Ledger.open(path, witness=witness).verify().entries == 4
    assert last_seen(witness) == ledger.head
    shutil.copy(path, path.with_name("backup.db"))
    spend(ledger)
    restore(path.with_name("backup.db"), path)
    with pytest.raises(LedgerError, match=BEHIND):
        Ledger.open(path, witness=witness)


def test_a_moved_ledger_keeps_its_witness(path, file):
    live = Ledger(1, path, witness=file)
    spend(live, 2)
    copied = path.with_name("moved.db")
    shutil.copy(path, copied)
    path.unlink()
    moved = Ledger.open(copied, witness=file)
    with pytest.raises(LedgerError, match="copy"):
        spend(moved)
    assert moved.adopt("a new disk").what == "adopted, witnessed: a new disk"
    assert spend(moved) == last_seen(file)


def test_a_witness_can_be_changed_and_given_up(path, file):
    ledger = Ledger(1, path, witness=file)
    spend(ledger, 2)
    other = file.with_name("other.db")
    before = Ledger.open(path, witness=file)
    ledger.adopt("a larger disk", witness=other)
    assert spend(ledger) == last_seen(other)
    for stale in (before, Ledger.open(path, witness=file)):
        for call in (spend, lambda one: one.check(TENTH, "x")):
            with pytest.raises(LedgerError, match="not the ledger's witness: name its own"):
                call(stale)
    Ledger.open(path).adopt("no more")
    with pytest.raises(LedgerError, match="not the ledger's witness"):
        spend(Ledger.open(path, witness=other))
    assert Ledger.open(path).entries[-1].what == "adopted, no longer witnessed: no more"
    spend(Ledger.open(path))


# What is refused


def test_a_witness_is_what_it_was_made_for(path, file, tmp_path):
    spend(Ledger(1, path, witness=file), 2)
    with pytest.raises(LedgerError, match="cannot be its own witness"):
        Ledger.open(path, witness=path)
    with pytest.raises(LedgerError, match="no witness here"):
        Ledger.open(path, witness=tmp_path / "none.db")
    with pytest.raises(LedgerError, match="damaged, or no witness"):
        Ledger.open(path, witness=Ledger(1, tmp_path / "second.db").path)
    with pytest.raises(LedgerError, match="give it a path"):
        Ledger(1, witness=file)
    with pytest.raises(LedgerError, match="its witness saw 2 entries"):
        Ledger(1, tmp_path / "third.db", witness=file)
    Ledger(1, tmp_path / "fourth.db", witness=tmp_path / "its.db")
    with pytest.raises(LedgerError, match=r"the witness knows nothing|not what its witness saw"):
        Ledger.open(path, witness=tmp_path / "its.db")
    file.write_text("x" * 5000)
    with pytest.raises(LedgerError, match="this file is not a witness"):
        Ledger.open(path, witness=file)


def test_an_empty_witness_is_none_of_a_ledger_with_entries(path, file):
    ledger = Ledger(1, path, witness=file)
    spend(ledger, 2)
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM dpreg_witness")
    for call in (lambda: Ledger.open(path, witness=file), lambda: spend(ledger)):
        with pytest.raises(LedgerError, match="the witness knows nothing of this ledger"):
            call()


def test_a_pickle_knows_the_witness(path, witness):
    twin = pickle.loads(pickle.dumps(Ledger(1, path, witness=witness)))
    assert spend(twin.for_analyst("ann")) == last_seen(witness)


def test_nothing_is_charged_where_the_witness_cannot_be_written(tmp_path):
    reachable(tmp_path)
    path, file = tmp_path / "open" / "ledger.db", tmp_path / "witness.db"
    path.parent.mkdir()
    Ledger(1, path, witness=file)
    path.parent.chmod(0o777)
    path.chmod(0o666)
    file.chmod(0o644)
    tmp_path.chmod(0o755)

    def stranger():
        ledger = Ledger.open(path, witness=file)
        with pytest.raises(LedgerError, match="the witness or its folder may not be written to"):
            spend(ledger)
        return len(Ledger.open(path).entries)

    assert as_user(stranger) == 0


def test_what_failed_between_the_commits_is_not_certain(path, file, monkeypatch):
    ledger, honest = Ledger(1, path, witness=file), SqliteDatabase.writing

    @contextlib.contextmanager
    def writing(database, deadline):
        with honest(database, deadline) as run:
            yield run
            if database.role == "witness":
                raise LedgerError("the disk is full: nothing was charged")

    monkeypatch.setattr(SqliteDatabase, "writing", writing)
    with pytest.raises(LedgerError) as caught:
        spend(ledger)
    assert "may or may not have been written, and nothing was released" in str(caught.value)
    assert "nothing was charged" not in str(caught.value)
    monkeypatch.undo()
    assert len(Ledger.open(path, witness=file).entries) == 1
    with pytest.raises(BudgetError, match=r"eps=0\.9 of eps=1 is left"):
        ledger.charge(Budget(1), "too much")


def test_a_charge_whose_answer_was_lost_is_made_once(path, file, monkeypatch):
    """The witness's server goes away at its commit, when the ledger has the line."""
    ledger, honest = Ledger(1, path, witness=file), SqliteDatabase.writing

    @contextlib.contextmanager
    def writing(database, deadline):
        with honest(database, deadline) as run:
            yield run
            if database.role == "witness":
                monkeypatch.undo()
                raise LostConnection("gone")

    monkeypatch.setattr(SqliteDatabase, "writing", writing)
    assert spend(ledger) == last_seen(file)
    assert len(ledger.entries) == 1


def test_an_analyst_may_only_add_to_a_witness(server, base, path):
    psycopg = pytest.importorskip("psycopg")
    name = base.rpartition("/")[2]
    Ledger(1, path, witness=base)
    server.sql("CREATE ROLE eve LOGIN; GRANT SELECT, INSERT ON dpreg_witness TO eve", name)
    place = server.url(name, "eve")
    spend(Ledger.open(path, witness=place), 2)
    with psycopg.connect(place, autocommit=True) as connection:
        for statement in ("DELETE FROM dpreg_witness", "UPDATE dpreg_witness SET number = 0"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    with pytest.raises(LedgerError, match="may not do that to the witness"):
        Ledger.open(path).adopt("hers", witness=place)
    assert Ledger.open(path, witness=base).verify().entries == 2
    server.sql("DROP OWNED BY eve; DROP ROLE eve", name)
