"""What is PostgreSQL's own: privileges, restarts, locks, addresses."""

import contextlib
import pickle
import threading
import time
from dataclasses import replace

import pytest
from oracles.forks import FORK

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger import chain as store
from dpreg.privacy.ledger.postgres import LostConnection

psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
TENTH = Budget("0.1")


def name_of(base):
    return base.rpartition("/")[2]


def test_an_analyst_who_may_only_add_cannot_edit(server, base):
    Ledger(1, base).charge(TENTH, "by the owner")
    server.sql(
        "CREATE ROLE ann LOGIN; GRANT SELECT ON dpreg_ledger, dpreg_entries TO ann;"
        " GRANT INSERT ON dpreg_entries TO ann",
        name_of(base),
    )
    place = server.url(name_of(base), "ann")
    Ledger.open(place, analyst="ann").charge(TENTH, "by the analyst")
    with psycopg.connect(place, autocommit=True) as connection:
        for statement in (
            "DELETE FROM dpreg_entries",
            "UPDATE dpreg_entries SET eps = '0/1'",
            "UPDATE dpreg_ledger SET caps = ''",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    server.sql("REVOKE INSERT ON dpreg_entries FROM ann", name_of(base))
    with pytest.raises(LedgerError, match="may not"):
        Ledger.open(place).charge(TENTH, "no more")
    assert Ledger.open(base).verify().entries == 2
    server.sql("DROP OWNED BY ann; DROP ROLE ann", name_of(base))


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("UPDATE dpreg_entries SET eps = '0/1' WHERE number = 2", "edited"),
        ("DELETE FROM dpreg_entries WHERE number = 4", "it has 3 entries, and had 4"),
        ("DELETE FROM dpreg_entries WHERE number = 2", "chain breaks"),
    ],
)
def test_edits_are_seen(server, base, statement, match):
    live = Ledger(1, base)
    for _ in range(4):
        live.charge(TENTH, "x")
    head = live.head
    server.sql(statement, name_of(base))
    with pytest.raises(LedgerError, match=match):
        Ledger.open(base).verify(head)
    if "number = 4" in statement:
        with pytest.raises(LedgerError, match="rolled back"):
            live.charge(TENTH, "x")


def test_a_copied_database_is_not_charged_until_it_is_adopted(server, base):
    ledger = Ledger(1, base)
    ledger.charge(TENTH, "x")
    ledger.close()
    copied = f"copy_of_{name_of(base)}"
    server.sql(f"CREATE DATABASE {copied} TEMPLATE {name_of(base)}")
    twin = Ledger.open(server.url(copied))
    with pytest.raises(LedgerError, match="copy"):
        twin.charge(TENTH, "x")
    twin.adopt("the first server died")
    twin.charge(TENTH, "x")


def test_a_ledger_made_anew_is_refused(server, base):
    live = Ledger(1, base)
    live.charge(TENTH, "x")
    server.sql("DROP TABLE dpreg_ledger, dpreg_entries", name_of(base))
    with pytest.raises(LedgerError, match="no ledger"):
        live.charge(TENTH, "x")
    Ledger(1, base).charge(TENTH, "x")
    with pytest.raises(LedgerError, match="another ledger"):
        live.charge(TENTH, "x")


def test_a_held_lock_is_a_clear_error_after_the_timeout(base):
    Ledger(1, base)
    with psycopg.connect(base) as connection:
        connection.execute(
            "SELECT pg_advisory_xact_lock(1685090919, 'dpreg_entries'::regclass::oid::int8::int4)"
        )
        start = time.monotonic()
        with pytest.raises(LedgerError, match="held by another connection"):
            Ledger.open(base, timeout=0.5).charge(TENTH, "waits")
        assert time.monotonic() - start < 15


def test_a_restart_in_the_middle_loses_and_doubles_nothing(server, base):
    """Charges go on while the server is stopped at once, as by a power cut, and started again."""
    ledger = Ledger(1000, base)
    done, running, faults = [], threading.Event(), []
    running.set()

    def work(number):
        mine = Ledger.open(base, timeout=120)
        while running.is_set():
            try:
                done.append(mine.charge(TENTH, f"by {number}").head)
            except LedgerError as fault:
                faults.append(str(fault))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()

    def some_more(than):
        until = time.monotonic() + 60
        while len(done) < than + 20 and time.monotonic() < until:
            time.sleep(0.01)
        assert len(done) >= than + 20
        return len(done)

    before = 0
    try:
        for _ in range(2):
            before = some_more(before)
            server.stop("immediate")
            server.start()
        some_more(before)
    finally:
        running.clear()
        for thread in threads:
            thread.join()
    assert faults == []
    assert sorted(done) == sorted(entry.head for entry in ledger.entries)
    assert ledger.verify().spent == Budget(len(done)) * "0.1"


def test_a_server_that_stays_away_is_a_clear_error(server, base):
    Ledger(1, base)
    ledger = Ledger.open(base, timeout=3)
    server.stop("fast")
    try:
        with pytest.raises(LedgerError, match="was lost"):
            ledger.charge(TENTH, "x")
        with pytest.raises(LedgerError, match="cannot be reached"):
            Ledger.open(base, timeout=3)
    finally:
        server.start()
    ledger.charge(TENTH, "x")
    assert ledger.spent == TENTH


def test_a_fork_uses_a_connection_of_its_own(base):
    ledger = Ledger(1, base)
    ledger.charge(TENTH, "before")
    process = FORK.Process(target=lambda: ledger.charge(TENTH, "in the child"))
    process.start()
    process.join(20)
    assert process.exitcode == 0
    ledger.charge(TENTH, "after")
    assert [entry.what for entry in ledger.entries] == ["before", "in the child", "after"]


def test_no_connection_is_kept_between_uses(server, base):
    ledger = Ledger(1, base)
    ledger.charge(TENTH, "before")
    with psycopg.connect(base) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dpreg'"
        until = time.monotonic() + 30
        while connection.execute(query).fetchone() != (0,):
            assert time.monotonic() < until
            time.sleep(0.01)


def test_a_reader_sees_one_state(base):
    ledger, other = Ledger(1, base), Ledger(1, base)
    with ledger._reading() as (run, last):
        other.charge(TENTH, "beside")
        assert store.last(run) is None
        assert last.number == 0
    assert ledger.spent == TENTH


def test_commits_are_synchronous_where_the_server_is_told_otherwise(server, base):
    ledger = Ledger(1, base)
    server.sql(f"ALTER DATABASE {name_of(base)} SET synchronous_commit = off", name_of(base))
    with ledger._book.database.writing(time.monotonic() + 30) as run:
        assert run("SHOW synchronous_commit") == [("on",)]


@pytest.mark.parametrize("lost", [True, False])
def test_what_fails_after_a_lost_connection_is_not_certain(lost):
    class Server:
        calls = 0

        def writing(self, deadline):
            self.calls += 1
            if lost and self.calls == 1:
                raise LostConnection("gone")
            raise LedgerError("held by another process; nothing was charged: try again")

    ledger = Ledger(1)
    asked = ledger._asked(TENTH, "x", "", None)
    with pytest.raises(LedgerError) as caught:
        replace(ledger._book, database=Server()).charge(ledger._seen, asked, time.monotonic() + 60)
    assert ("nothing was charged" in str(caught.value)) is not lost
    assert ("may or may not have been written" in str(caught.value)) is lost


def test_a_password_is_in_no_message_and_no_pickle(server, base):
    place = base.replace("owner@", "owner:s3cret@") + "?password=s3cret&application_name=x"
    ledger = Ledger(1, place)
    for text in (str(ledger.path), repr(ledger), pickle.dumps(ledger).decode("latin1")):
        assert "s3cret" not in text
    nowhere = f"postgresql://u:s3cret@127.0.0.1:{server.port}/nowhere"
    with pytest.raises(LedgerError) as caught:
        Ledger(1, nowhere)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "url",
    ["postgresql://[", "postgresql://h/b?nonsense=1", "postgresql://h/\ud800", "postgresql://h\0"],
)
def test_bad_addresses_are_refused(url):
    with contextlib.suppress(ValueError), pytest.raises(BudgetError):
        Ledger(1, url)


def test_several_ledgers_in_one_database_lie_in_schemas(server, base):
    server.sql("CREATE SCHEMA houses", name_of(base))
    houses = Ledger(2, f"{base}?options=-csearch_path%3Dhouses")
    Ledger(1, base).charge(TENTH, "x")
    assert houses.spent == Budget(0)
    assert pickle.loads(pickle.dumps(houses)).cap == Budget(2)
