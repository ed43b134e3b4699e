"""Files by name: only regular ones are opened, and they are written whole or not at all.

A name may be a FIFO, on which `open` waits for ever, a folder, a loop of links or no name at all.
All of these are refused with one of dpreg's errors before anything is read. A write goes to a new
file beside the old one, is synced and renamed into place: a full disk or a crash leaves the earlier
file as it was. A table's file is known from one that took its place without a look at its rows
(`Stamp`): all passes over a table must read the same rows, as halves of them are told apart by
their places.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from dpreg.errors import DataError, DpregError, quotable, shown

_MOST_BYTES = 1 << 30
_LONGEST_NAME = 255


def packaged(name: str, room: str = "dpreg.results") -> str:
    """Return the text of a file that lies in a room."""
    return resources.files(room).joinpath(name).read_text(encoding="utf-8")


@cache
def catalogue(name: str, room: str = "dpreg.results") -> Mapping[str, Any]:
    """Return what a TOML file that lies in a room holds."""
    return tomllib.loads(packaged(name, room))


def reason(fault: OSError | ValueError) -> str:
    """Say why the system refused, without the name it was given: "no space left on device"."""
    if isinstance(fault, OSError) and fault.strerror:
        return fault.strerror[:1].lower() + fault.strerror[1:]
    return "the name holds a null character" if "null" in str(fault) else "it is not a path"


def named(path: str | os.PathLike[str]) -> str:
    """Quote a path for a message; the text of a table, put there by mistake, is not quoted."""
    return shown(os.fspath(path), _LONGEST_NAME)


def identity(status: os.stat_result) -> tuple[int, int]:
    """Return what all names and links of one file share: its device, and its number there."""
    return status.st_dev, status.st_ino


Stamp: TypeAlias = tuple[int, int, int, int] | None
"""A file's identity, its size and the time of its last change; None where these are not known."""


def stamp(path: str) -> Stamp:
    """Return the stamp of a file as it is now."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return *identity(status), status.st_size, status.st_mtime_ns


def check_same(path: str, first: Stamp) -> None:
    """Refuse a file that was written anew.

    Parameters
    ----------
    path : str
    first : Stamp
        The file's stamp when it was opened.

    Raises
    ------
    DataError
        If its stamp has changed. A file that cannot be looked at is left to whoever reads it.
    """
    if stamp(path) not in (None, first):
        raise DataError(f"{path} has changed since it was opened")


def ordinary(path: str | os.PathLike[str], error: type[DpregError] = DataError) -> Path | None:
    """Follow links to a file; refuse what is there and is not a regular file.

    Parameters
    ----------
    path : path-like
    error : type, default DataError
        The exception class to raise.

    Returns
    -------
    Path or None
        The file's own name, every link followed; None where there is no such file yet.

    Raises
    ------
    DataError
        For a folder, a FIFO, a device, a socket, a loop of links, a name with a null character, or
        a place that may not be looked at.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise error(f"a path must be text, not {type(path).__name__}")
    text = os.fspath(path)
    if not text:
        raise error("the name of a file is empty: give one")
    mode, why = None, ""
    try:
        resolved = Path(os.path.realpath(text))
        mode = os.stat(text).st_mode
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as fault:
        why = reason(fault)
    # The system's own error quotes the whole text: it must not be the context of what is raised.
    if why:
        raise error(f"{named(text)} cannot be used: {why}")
    if mode is None:
        if not resolved.parent.is_dir():
            folder = resolved.parent if quotable(text) else text
            raise error(f"there is no folder {named(folder)}")
        return None
    if stat.S_ISDIR(mode):
        raise error(f"{named(text)} is a folder: give the name of a file")
    if not stat.S_ISREG(mode):
        raise error(f"{named(text)} is not a regular file (a pipe, a device or a socket)")
    return resolved


def read_text(path: str | os.PathLike[str], error: type[DpregError] = DataError) -> str:
    """Return the text of a regular file, which must be UTF-8.

    Raises
    ------
    DataError
        As `ordinary`; where there is no such file; where it is not UTF-8 or larger than a gibibyte.
    """
    file = ordinary(path, error)
    if file is None:
        raise error(f"there is no file {named(path)}")
    try:
        # A pipe that took the file's place since would be opened without waiting.
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise error(f"{named(path)} is not a regular file")
            content = stream.read(_MOST_BYTES + 1)
    except OSError as fault:
        raise error(f"{named(path)} cannot be read: {reason(fault)}") from None
    if len(content) > _MOST_BYTES:
        raise error(f"{named(path)} is larger than a gibibyte")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise error(f"{named(path)} is not UTF-8 text") from None


def check_writable(path: str | os.PathLike[str]) -> Path | None:
    """Refuse a place where `write_text` would fail, as far as can be known beforehand.

    Returns what `ordinary` does.
    """
    file = ordinary(path)
    folder = Path(os.path.realpath(path)).parent
    for one in (folder,) if file is None else (folder, file):
        if not os.access(one, os.W_OK):
            raise DataError(f"{named(path)} cannot be written: permission denied")
    return file


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Put `text` at `path` whole or not at all, and on the disk when this returns.

    A file that is there keeps its mode, its links and, where this user may set it, its group.

    Raises
    ------
    DataError
        As `ordinary`; where the disk is full, the folder is read-only or this user may not write
        there. The earlier file is then as it was.
    """
    old = check_writable(path)
    file = old or Path(os.path.realpath(path))
    fresh = file.with_name(f".{file.name[:100]}.{secrets.token_hex(8)}")
    try:
        mode = 0o666 if old is None else 0o600
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            if old is not None:
                _as_before(descriptor, old)
            os.fsync(descriptor)
        os.replace(fresh, file)
        sync_folder(file.parent)
    except OSError as fault:
        raise DataError(f"{named(path)} cannot be written: {reason(fault)}") from None
    finally:
        fresh.unlink(missing_ok=True)


def _as_before(descriptor: int, old: Path) -> None:
    """Give the new file the mode and the group of the old one."""
    if sys.platform == "win32":
        return
    before = os.stat(old)
    if os.fstat(descriptor).st_gid != before.st_gid:
        try:
            os.fchown(descriptor, -1, before.st_gid)
        except PermissionError:
            # Not a member of the group: then the group's rights must not go to another group.
            os.fchmod(descriptor, before.st_mode & 0o707)
            return
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to the disk."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
