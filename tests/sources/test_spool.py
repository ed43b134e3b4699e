"""Rows that are many go to a file that nobody can open and that no end leaves behind."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap

import numpy as np
import pandas as pd
import pytest
from oracles.open_files import open_files

from dpreg.columns import Unbounded
from dpreg.errors import DataError
from dpreg.sources import as_source
from dpreg.sources.kept import kept_source
from dpreg.sources.persons import PERSON, Persons

KEY = bytes(range(32))
X = {"x": Unbounded()}
FRAME = pd.DataFrame({"who": np.arange(4000) % 700, "x": np.arange(4000.0)})

linux = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks at /proc")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Return where temporary files go; send rows there soon."""
    monkeypatch.setattr("dpreg.sources.kept.HELD_BYTES", 10_000)
    monkeypatch.setattr("dpreg.sources.kept._WRITE_BYTES", 4_000)
    monkeypatch.setattr("dpreg.sources.kept._READ_ROWS", 100)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def kept(data=FRAME, most=None):
    return kept_source(as_source(data), X, Persons("who", most, KEY))


@linux
def test_the_file_has_no_name_and_goes_with_its_table(folder):
    source = kept()
    (state,) = open_files(folder)
    assert state.st_nlink == 0
    assert stat.S_IMODE(state.st_mode) == 0o600
    assert state.st_uid == os.getuid()
    assert state.st_size == 4000 * 3 * 8
    assert os.listdir(folder) == []
    assert sum(len(chunk["x"]) for chunk in source.chunks(X)) == 4000
    del source
    assert open_files(folder) == []


@linux
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_ends_the_reading_ends_the_file(error, folder):
    def chunks():
        yield FRAME[:2000]
        assert len(open_files(folder)) == 1
        raise error

    with pytest.raises((error, DataError)):
        kept(chunks)
    assert open_files(folder) == []
    assert os.listdir(folder) == []


@linux
def test_a_kill_leaves_nothing(folder):
    program = """
        import os, signal, sys, tempfile
        import numpy as np, pandas as pd
        from dpreg.columns import Unbounded
        from dpreg.sources import as_source
        from dpreg.sources import kept as spool
        from dpreg.sources.kept import kept_source
        from dpreg.sources.persons import Persons
        spool.HELD_BYTES = 1000
        frame = pd.DataFrame({"who": np.arange(500), "x": 1.0})
        kept = kept_source(as_source(frame), {"x": Unbounded()}, Persons("who", None, bytes(32)))
        assert kept._blocks[0].file is not None
        os.kill(os.getpid(), signal.SIGKILL)
    """
    environment = os.environ | {"TMPDIR": str(folder)}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    ended = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert os.listdir(folder) == []


@pytest.mark.parametrize("most", [None, 2])
def test_a_file_holds_what_memory_would(most, monkeypatch):
    filed = kept(most=most)
    monkeypatch.setattr("dpreg.sources.kept.HELD_BYTES", 1 << 20)
    held = kept(most=most)
    assert (filed.rows, filed.person_count) == (held.rows, held.person_count)
    assert held.person_count == 700
    both = [np.concatenate([chunk["x"] for chunk in one.chunks(X)]) for one in (filed, held)]
    assert sorted(both[0]) == sorted(both[1])
    for source in (filed, held):
        whose = [set(chunk["x"] % 700) for chunk in source.chunks(X, 50)]
        assert sum(map(len, whose)) == 700  # nobody is in two chunks
        assert all(
            chunk[PERSON][-1] + 1 == len(set(chunk["x"] % 700)) for chunk in source.chunks(X)
        )


def test_several_passes_read_the_same_rows():
    source = kept()
    first, second = ([chunk["x"].tolist() for chunk in source.chunks(X, 90)] for _ in range(2))
    assert first == second


def test_passes_side_by_side_read_the_same_rows():
    source = kept()
    expected = [chunk["x"].tolist() for chunk in source.chunks(X, 90)]
    both = zip(source.chunks(X, 90), source.chunks(X, 90), strict=True)
    for one, (first, second) in zip(expected, both, strict=True):
        assert first["x"].tolist() == second["x"].tolist() == one


def test_a_disk_that_fails_is_an_error_without_a_cause(monkeypatch):
    source = kept()
    os.ftruncate(source._blocks[0].file.cells.fileno(), 100)
    with pytest.raises(DataError, match=r"temporary file.*TMPDIR") as cut:
        list(source.chunks(X))

    def full(**_):
        raise OSError(28, "the 17th row did not fit")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(DataError, match=r"temporary file.*TMPDIR") as refused:
        kept()
    for found in (cut, refused):
        assert found.value.__cause__ is None
        assert found.value.__context__ is None
    assert "17th" not in str(refused.value)


def test_nothing_of_the_rows_is_shown():
    assert not any("[" in repr(block) for block in kept()._blocks)
    assert repr(kept()) == "Source(x: numeric)"
