"""What befalls a ledger's file: restored, cut, edited, linked, copied, deleted, locked, on a full
disk, in the hands of two users."""

import contextlib
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import threading
import time
from types import SimpleNamespace

import pytest
from oracles.as_user import GROUP, NOBODY, OTHER, as_user, reachable
from oracles.forks import FORK

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger import book as charging

TENTH = Budget("0.1")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def spend(ledger, times):
    for number in range(times):
        ledger.charge(TENTH, f"charge {number}")
    return ledger.head


def backup(path, to):
    source, target = sqlite3.connect(path), sqlite3.connect(to)
    with contextlib.closing(source), contextlib.closing(target):
        source.backup(target)


def edit(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("how", ["renamed into place", "written over"])
def test_a_restored_file_is_refused_by_a_live_handle(path, how):
    """What 0.1 accepted: 9 were charged of a cap of 5."""
    live = Ledger(5, path)
    spend(live, 3)
    backup(path, path.with_name("backup.db"))
    head = spend(live, 4)
    if how == "renamed into place":
        path.with_name("backup.db").replace(path)
        for file in path.parent.glob("ledger.db-*"):
            file.unlink()  # SQLite would take what was restored forward again from its log
    else:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        path.write_bytes(path.with_name("backup.db").read_bytes())
    with pytest.raises(LedgerError, match=r"rolled back|replaced|damaged"):
        live.charge(TENTH, "after")
    with pytest.raises(LedgerError, match=r"rolled back|replaced|damaged"):
        _ = live.spent
    with pytest.raises(LedgerError, match="it has 3 entries, and had 7"):
        Ledger.open(path, read_only=True).verify(head)


def test_a_rolled_back_ledger_that_has_grown_again_is_refused(path):
    live = Ledger(5, path)
    head = spend(live, 5)
    edit(path, "DELETE FROM dpreg_entries WHERE number > 2")
    spend(Ledger.open(path), 6)
    with pytest.raises(LedgerError, match="entry 5 is not the one that was seen"):
        live.charge(TENTH, "after")
    assert Ledger.open(path).verify().entries == 8  # whole in itself: only a kept head tells
    with pytest.raises(LedgerError, match="entry 5 is not the one that the head names"):
        Ledger.open(path).verify(head)


def test_a_handle_that_only_opened_a_ledger_refuses_an_earlier_state(path):
    spend(Ledger(5, path), 5)
    opened = Ledger.open(path)
    edit(path, "DELETE FROM dpreg_entries WHERE number = 5")
    with pytest.raises(LedgerError, match="has 4 entries and had 5"):
        opened.charge(TENTH, "the first")


def test_a_truncated_ledger_is_refused(path):
    live = Ledger(5, path)
    head = spend(live, 5)
    edit(path, "DELETE FROM dpreg_entries WHERE number = 5")
    with pytest.raises(LedgerError, match="has 4 entries and had 5"):
        live.charge(TENTH, "after")
    with pytest.raises(LedgerError, match="it has 4 entries, and had 5"):
        Ledger.open(path).verify(head)


@pytest.mark.parametrize(
    ("statement", "charge", "verify"),
    [
        ("UPDATE dpreg_entries SET eps = '1/100' WHERE number = 2", None, "entry 2 .*edited"),
        ("UPDATE dpreg_entries SET spent_eps = '0/1' WHERE number = 4", "edited", "edited"),
        (
            "UPDATE dpreg_entries SET spent_eps = '-9/1', hash = 'x' WHERE number = 4",
            "edited",
            "edited",
        ),
        ("UPDATE dpreg_entries SET what = 'other' WHERE number = 1", "edited", "edited"),
        ("DELETE FROM dpreg_entries WHERE number = 2", None, "chain breaks at entry 3"),
        ("""UPDATE dpreg_ledger SET caps = replace(caps, '"5"', '"50"')""", "caps", "caps"),
        ("DELETE FROM dpreg_ledger", "damaged", "damaged"),
        ("UPDATE dpreg_ledger SET format = 3", "newer dpreg", "newer dpreg"),
        ("DROP TABLE dpreg_entries", "damaged", "damaged"),
        ("UPDATE dpreg_ledger SET caps = '[]'", "damaged", "damaged"),
    ],
)
def test_an_edited_ledger_is_refused_or_seen_in_verify(path, statement, charge, verify):
    spend(Ledger(5, path), 4)
    edit(path, statement)
    if charge is None:
        Ledger.open(path).charge(TENTH, "not seen")
    else:
        with pytest.raises(LedgerError, match=charge):
            Ledger.open(path).charge(TENTH, "seen")
    with pytest.raises(LedgerError, match=verify):
        Ledger.open(path).verify()


def test_pages_of_another_file_are_refused(path):
    live = Ledger(5, path)
    spend(live, 40)
    live.close()
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = os.urandom(len(content) - len(content) // 2)
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger.open(path).verify()


def test_a_hard_link_is_refused_by_both_names(path):
    live = Ledger(5, path)
    os.link(path, path.with_name("second.db"))
    with pytest.raises(LedgerError, match="hard link"):
        Ledger.open(path.with_name("second.db"))
    with pytest.raises(LedgerError, match="hard link"):
        live.charge(TENTH, "by the first")
    path.with_name("second.db").unlink()
    live.charge(TENTH, "by the first")


def test_a_symbolic_link_is_another_name_of_one_account(path):
    live = Ledger(5, path)
    path.with_name("link.db").symlink_to(path)
    Ledger.open(path.with_name("link.db")).charge(TENTH, "by the link")
    assert live.spent == TENTH


def test_a_copy_is_not_charged_until_it_is_adopted(path):
    live = Ledger(5, path)
    head = spend(live, 2)
    live.close()
    copied = path.with_name("copy.db")
    shutil.copy(path, copied)
    twin = Ledger.open(copied)
    assert twin.spent == Budget("0.2")
    with pytest.raises(LedgerError, match="copy"):
        twin.charge(TENTH, "by the copy")
    path.unlink()
    entry = twin.adopt("the first disk died")
    assert (entry.budget, entry.what) == (Budget(0), "adopted: the first disk died")
    twin.charge(TENTH, "by the copy")
    Ledger.open(copied).charge(TENTH, "by another handle")
    assert twin.verify(head).entries == 5


def test_a_renamed_ledger_is_the_same(path):
    Ledger(5, path).charge(TENTH, "before")
    path.rename(path.with_name("moved.db"))
    moved = Ledger.open(path.with_name("moved.db"))
    moved.charge(TENTH, "after")
    assert moved.spent == Budget("0.2")


def test_a_ledger_made_anew_is_refused_and_seen_in_verify(path):
    live = Ledger(5, path)
    head = spend(live, 3)
    for file in path.parent.glob("ledger.db*"):
        file.unlink()
    new = Ledger(5, path)
    with pytest.raises(LedgerError, match=r"replaced|another ledger"):
        live.charge(TENTH, "by the old handle")
    spend(new, 3)
    with pytest.raises(LedgerError, match="not the one that the head names"):
        new.verify(head)


@pytest.mark.parametrize("head", ["", "x", "1:2", "-1:" + "0" * 64, "1:" + "G" * 64, 7, None])
def test_a_head_is_checked_before_it_is_compared(path, head):
    ledger = Ledger(5, path)
    if head is None:
        assert ledger.verify(ledger.head).head == ledger.head
    else:
        with pytest.raises(LedgerError, match="64 hexadecimal"):
            ledger.verify(head)


# Names that are no files


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "null", "nowhere", "device", "number"])
def test_what_is_no_file_is_refused_at_once(tmp_path, kind):
    places = {name: tmp_path / name for name in ("folder", "pipe", "loop", "nowhere/ledger")}
    places |= {"null": "a\0b", "device": "/dev/null", "number": 7}
    places["folder"].mkdir()
    os.mkfifo(places["pipe"])
    places["loop"].symlink_to(places["loop"])
    place = places.get(kind, places["nowhere/ledger"])
    start = time.monotonic()
    for call in (lambda: Ledger(1, place), lambda: Ledger.open(place)):
        with pytest.raises(LedgerError):
            call()
    assert time.monotonic() - start < 30


# Waiting


def hold(path, held, stopped):
    """Hold the lock as a process that was stopped in the middle of a charge does."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    held.set()
    stopped.wait(60)


@pytest.fixture
def holder(path):
    held, stopped = FORK.Event(), FORK.Event()
    Ledger(5, path)
    process = FORK.Process(target=hold, args=(path, held, stopped))
    process.start()
    assert held.wait(10)
    os.kill(process.pid, signal.SIGSTOP)
    yield process
    process.kill()
    process.join()


def test_a_stopped_holder_is_a_clear_error_after_the_timeout(path, holder):
    ledger = Ledger.open(path, timeout=0.5)
    start = time.monotonic()
    with pytest.raises(LedgerError, match="held by another process"):
        ledger.charge(TENTH, "waits")
    assert 0.4 < time.monotonic() - start < 15  # and not the 30 s of a ledger that was not told
    assert ledger.spent == Budget(0)  # reading goes on beside the writer
    holder.kill()
    holder.join()
    ledger.charge(TENTH, "goes in")


def test_ctrl_c_ends_the_wait(path, holder):
    ledger = Ledger.open(path, timeout=60)
    # Other tests of this process may have imported what takes the handler for itself.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ledger.charge(TENTH, "waits")
    assert time.monotonic() - start < 15
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("timeout", [-1, True, "soon", float("nan")])
def test_bad_timeouts_are_refused(timeout):
    with pytest.raises(BudgetError, match="timeout"):
        Ledger(1, timeout=timeout)


# Users, disks


def test_modes_are_left_as_they_were(path):
    Ledger(5, path).close()
    path.chmod(0o640)
    spend(Ledger.open(path), 3)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    live = Ledger.open(path)
    live.charge(TENTH, "once more")
    for file in path.parent.glob("ledger.db-*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o640, file.name


def test_two_users_of_one_group_share_a_ledger(tmp_path):
    reachable(tmp_path)
    folder = tmp_path / "shared"
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, GROUP)
    folder.chmod(0o2770)
    path = folder / "ledger.db"

    def first():
        ledger = Ledger(5, path)
        spend(ledger, 2)
        return ledger.head

    def second():
        ledger = Ledger.open(path)
        spend(ledger, 2)
        return ledger.verify().entries

    def stranger():
        with pytest.raises(LedgerError):
            Ledger.open(path)
        return True

    as_user(first, NOBODY, NOBODY, [GROUP], umask=0o007)
    path.chmod(0o660)
    assert as_user(second, OTHER, OTHER, [GROUP]) == 4
    as_user(lambda: spend(Ledger.open(path), 2), NOBODY, NOBODY, [GROUP])
    assert as_user(stranger, 65531, 65531)
    assert Ledger.open(path).spent == Budget("0.6")


def test_two_users_at_once_where_the_folder_does_not_pass_on_its_group(tmp_path):
    """Each keeps the ledger open while the other charges."""
    reachable(tmp_path)
    folder = tmp_path / "shared"
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, GROUP)
    folder.chmod(0o770)
    path = folder / "ledger.db"
    as_user(lambda: Ledger(5, path).close(), NOBODY, GROUP)
    path.chmod(0o660)

    def holds_while(other):
        ledger = Ledger.open(path)
        spend(ledger, 1)
        assert other() == 1
        spend(ledger, 1)
        return ledger.verify().entries

    def charges_once():
        return len(spend(Ledger.open(path), 1)) > 60

    go, done = FORK.Event(), FORK.Event()

    def waits():
        assert go.wait(20)
        charges_once()
        done.set()
        return 1

    second = threading.Thread(target=lambda: as_user(waits, OTHER, OTHER, [GROUP]))
    second.start()

    def other():
        go.set()
        return int(done.wait(20))

    assert as_user(lambda: holds_while(other), NOBODY, NOBODY, [GROUP]) == 3
    second.join()


def test_without_permission_nothing_is_charged(tmp_path):
    reachable(tmp_path)
    path = tmp_path / "ledger.db"
    spend(Ledger(5, path), 2)
    path.chmod(0o644)

    def stranger():
        ledger = Ledger.open(path, read_only=True)
        with pytest.raises(LedgerError):
            Ledger.open(path).charge(TENTH, "not mine")
        with pytest.raises(LedgerError):
            Ledger(1, tmp_path / "new.db")
        return str(ledger.spent)

    for file in tmp_path.glob("ledger.db-*"):
        file.unlink()
    assert as_user(stranger) == "eps=0.2"
    assert Ledger.open(path).spent == Budget("0.2")


def test_who_may_only_read_sees_what_is_still_in_the_log(tmp_path):
    reachable(tmp_path)
    path = tmp_path / "ledger.db"
    Ledger(5, path)
    path.chmod(0o644)
    charged, done = FORK.Event(), FORK.Event()

    def keeps_the_log():
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("SELECT count(*) FROM dpreg_entries").fetchall()
            spend(Ledger.open(path), 2)
            charged.set()
            done.wait(60)

    holder = FORK.Process(target=keeps_the_log)
    holder.start()
    assert charged.wait(60)
    assert as_user(lambda: len(Ledger.open(path, read_only=True).entries)) == 2
    done.set()
    holder.join()


@pytest.fixture
def mounted(tmp_path):
    """A file system of 200 kB, and a function that mounts it anew with other options."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk_is_an_error_and_leaves_the_ledger(mounted):
    ledger = Ledger(1000, mounted / "ledger.db")
    spend(ledger, 2)
    with contextlib.suppress(OSError), (mounted / "filler").open("wb", buffering=0) as filler:
        while filler.write(b"x" * 4096):
            pass
    done, said = 2, ""
    while not said and done < 200:
        try:
            ledger.charge(TENTH, "does it fit?")
            done += 1
        except LedgerError as fault:
            said = str(fault)
    assert said == "the disk is full: nothing was charged"
    with pytest.raises(LedgerError):
        Ledger(1, mounted / "second.db")
    (mounted / "filler").unlink()
    assert ledger.spent == Budget(done) * "0.1"
    ledger.charge(TENTH, "fits again")
    assert Ledger.open(mounted / "ledger.db").verify().entries == done + 1


def test_a_read_only_mount_is_read_and_not_charged(mounted):
    path = mounted / "ledger.db"
    ledger = Ledger(5, path)
    spend(ledger, 2)
    ledger.close()
    subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)
    assert Ledger.open(path, read_only=True).verify().entries == 2
    with pytest.raises(LedgerError):
        Ledger.open(path).charge(TENTH, "no")
    with pytest.raises(LedgerError, match="read-only"):
        Ledger(1, mounted / "new.db")


def test_sums_are_added_up_again():
    line, cap = SimpleNamespace(number=7), Budget(2)
    charging._check_sum(line, cap, Budget(2), Budget(2))
    with pytest.raises(LedgerError, match="sums are wrong at entry 7"):
        charging._check_sum(line, cap, Budget(1), Budget(2))
    with pytest.raises(LedgerError, match="cap is passed at entry 7"):
        charging._check_sum(line, cap, Budget(3), Budget(3))
