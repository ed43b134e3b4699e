import os
import subprocess
import time

import pytest
from oracles.as_user import as_user, reachable

from dpreg.errors import BudgetError, DataError
from dpreg.paths import check_writable, ordinary, read_text, write_text


@pytest.fixture
def mounted(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "null", "nowhere", "device", "number"])
def test_what_is_no_file_is_refused_at_once(tmp_path, kind):
    places = {name: tmp_path / name for name in ("folder", "pipe", "loop")}
    places |= {"null": "a\0b", "device": "/dev/null", "number": 7, "nowhere": tmp_path / "no" / "x"}
    places["folder"].mkdir()
    os.mkfifo(places["pipe"])
    places["loop"].symlink_to(places["loop"])
    start = time.monotonic()
    for error in (DataError, BudgetError):
        for call in (ordinary, read_text):
            with pytest.raises(error):
                call(places[kind], error)
    with pytest.raises(DataError):
        write_text(places[kind], "x")
    assert time.monotonic() - start < 30  # a pipe would be waited for, for ever


def test_writing_replaces_and_keeps_mode_and_links(tmp_path):
    path, link = tmp_path / "a", tmp_path / "link"
    write_text(path, "one")
    path.chmod(0o640)
    link.symlink_to(path)
    write_text(link, "two")
    assert (read_text(path), link.is_symlink(), path.stat().st_mode & 0o777) == ("two", True, 0o640)
    assert sorted(os.listdir(tmp_path)) == ["a", "link"]


def test_a_full_disk_leaves_the_earlier_file(mounted):
    write_text(mounted / "a", "one")
    with pytest.raises(DataError, match="no space left"):
        write_text(mounted / "a", "x" * 100_000)
    assert read_text(mounted / "a") == "one"
    assert os.listdir(mounted) == ["a"]


def test_a_read_only_mount_leaves_the_earlier_file(mounted):
    write_text(mounted / "a", "one")
    subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)
    with pytest.raises(DataError, match="cannot be written"):
        write_text(mounted / "a", "two")
    assert read_text(mounted / "a") == "one"


def test_without_permission_the_earlier_file_stays(tmp_path):
    reachable(tmp_path)
    path = tmp_path / "a"
    write_text(path, "one")
    tmp_path.chmod(0o777)
    path.chmod(0o600)

    def stranger():
        with pytest.raises(DataError, match="permission denied"):
            write_text(path, "two")
        with pytest.raises(DataError, match="permission denied"):
            read_text(path)
        return True

    assert as_user(stranger)
    assert read_text(path) == "one"
    assert os.listdir(tmp_path) == ["a"]


def test_an_interrupted_write_leaves_the_earlier_file(tmp_path, monkeypatch):
    write_text(tmp_path / "a", "one")

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_text(tmp_path / "a", "two")
    assert read_text(tmp_path / "a") == "one"
    assert os.listdir(tmp_path) == ["a"]


def test_an_empty_name_is_refused_before_anything_is_made():
    for use in (ordinary, check_writable, read_text):
        with pytest.raises(DataError, match="name of a file is empty"):
            use("")
