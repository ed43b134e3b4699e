"""Record batches, taken from an engine with care and cut into pieces.

What an engine says when it fails is never passed on: DuckDB, for one, quotes the cell that it could
not cast.

Tested in `tests/sources/test_arrow.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from dpreg.errors import DataError
from dpreg.sources.base import Chunk
from dpreg.sources.local import Piece

__all__ = ["batch_pieces", "guarded", "guarded_batches"]

_T = TypeVar("_T")

_END = object()


def guarded(work: Callable[[], _T], failed: str) -> _T:
    """Call an engine; its failure becomes a `DataError` that holds nothing of what it said.

    Parameters
    ----------
    work : callable
    failed : str
        What to say, from public facts; the exception's type is added.
    """
    try:
        return work()
    except Exception as error:
        kind = type(error).__name__
    # Outside the handler, so that the engine's exception is not even this one's context.
    raise DataError(f"{failed} ({kind})")


def batch_pieces(
    batch: Any, read: Callable[[Any], Chunk], size: int, part: int = 0
) -> Iterator[Piece]:
    """Cut a record batch into pieces.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    read : callable
        `batch_reader` of its schema.
    size : int
        Most rows of a piece.
    part : int
        As in `Piece`.
    """
    for start in range(0, batch.num_rows, size):
        rows = batch.slice(start, size)
        yield Piece(rows.num_rows, partial(read, rows), part)


def guarded_batches(batches: Iterator[Any], failed: str) -> Iterator[Any]:
    """Go through what an engine hands over, guarded, and close it however that ends."""
    try:
        while (batch := guarded(partial(next, batches, _END), failed)) is not _END:
            yield batch
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            guarded(close, failed)
