"""Tables that R has no rows of: files by their path, and streams that R's arrow package exports.

A stream crosses over by Arrow's C interface: Python makes room for the structure, R's arrow fills
it in at that address, and pyarrow takes it from there; no row is copied, and no function of R's is
called back.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any, Final

from dpreg.errors import ArgumentError
from dpreg.sources import Source, as_source

__all__ = ["close_source", "new_stream", "open_source", "opened"]

_STREAM: Final = 5 * ctypes.sizeof(ctypes.c_void_p)
"""Bytes of a struct ArrowArrayStream: four functions and its private data."""

_rooms: Final[dict[str, Any]] = {}
_sources: Final[dict[int, Source]] = {}
_numbers: Final = itertools.count(1)


def new_stream() -> str:
    """Make room for a stream and return its address, as text: too long for R's numbers."""
    room = ctypes.create_string_buffer(_STREAM)
    address = str(ctypes.addressof(room))
    _rooms[address] = room
    return address


def open_source(
    paths: list[str] | None = None, stream: str | None = None, whole: bool = False
) -> dict[str, Any]:
    """Open a table and return its public names and kinds.

    Parameters
    ----------
    paths : list of str, optional
        Files, or globs.
    stream : str, optional
        The address that `new_stream` returned, where R has put a stream since.
    whole : bool
        Whether R holds the stream's table in memory, so that it can be gone through again.
    """
    source = as_source(_table(stream, whole)) if stream is not None else _files(paths or [])
    number = next(_numbers)
    _sources[number] = source
    names = tuple(dict.fromkeys(source.names))
    once = tuple(name for name in names if source.names.count(name) == 1)
    return {"source": number, "names": once, "kinds": [str(source.kind(name)) for name in once]}


def opened(number: int) -> Source:
    """Return a table that is open."""
    return _sources[number]


def close_source(source: int) -> None:
    """Let go of a table."""
    _sources.pop(source, None)


def _files(paths: list[str]) -> Source:
    return as_source(paths[0] if len(paths) == 1 else paths)


def _table(address: str, whole: bool) -> Any:
    room = _rooms.pop(address)
    try:
        import pyarrow
    except ImportError:
        raise ArgumentError(
            "tables of the package arrow need pyarrow: pip install 'dpreg[arrow]'"
        ) from None
    reader = pyarrow.RecordBatchReader._import_from_c(ctypes.addressof(room))
    return reader.read_all() if whole else reader
