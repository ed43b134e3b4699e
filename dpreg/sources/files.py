"""Which files a path, a glob or a list of paths means."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpreg.errors import ArgumentError, DataError
from dpreg.paths import identity, named, ordinary
from dpreg.sources.base import LocalSource

_ENDINGS = {".parquet": "Parquet", ".pq": "Parquet", ".csv": "CSV", ".csv.gz": "CSV"}


def file_source(data: object) -> LocalSource:
    """Take Parquet or CSV files as one table.

    Parameters
    ----------
    data : str, os.PathLike, or list of them
        Files that end in .parquet or .pq, or in .csv or .csv.gz: the path of one; a glob, or a
        folder, whose files come in the order of their names; or a list of any of these, in the
        list's order. In a folder, names that start with a dot or an underscore are passed over, as
        are files with other endings. ``**`` in a glob stands for any folders.

    Returns
    -------
    LocalSource
        Names and kinds of every file are known. No row has been read, save that a CSV file's
        first block was opened for its header.

    Raises
    ------
    DataError
        If there is no such file; if a file cannot be opened; if a folder is partitioned (holds
        folders such as ``year=2020``, whose names would be a column).
        While rows are read: if a file is damaged. It names the file and the kind of failure, and
        nothing that stands in the file. The privacy ledger has been charged by then: that is done
        before the first row is read, and an error does not refund it.
    ArgumentError
        If the files' endings are of neither format, or of both.
    """
    paths = files_of(data)
    _check_once(paths)
    formats = {_ending(path) for path in paths}
    if None in formats:
        odd = next(path for path in paths if _ending(path) is None)
        endings = ", ".join(_ENDINGS)
        raise ArgumentError(
            f"data: {named(odd)} ends in none of {endings}, so its format is unknown"
        )
    if len(formats) > 1:
        raise ArgumentError("data: the files are of both formats, Parquet and CSV: give one table")
    if formats == {"Parquet"}:
        from dpreg.sources.arrow import ParquetSource

        return ParquetSource(paths)
    from dpreg.sources.csv_files import CsvSource

    return CsvSource(paths)


def files_of(data: Any) -> list[str]:
    """List a table's files: of paths, folders and globs, in their order."""
    given: Sequence[Any] = data if isinstance(data, list | tuple) else [data]
    return [path for one in given for path in _files(os.fspath(one))]


def check_not_data(path: str | os.PathLike[str]) -> None:
    """Refuse to write a result under a name that a folder or a glob of tables would take in.

    Raises
    ------
    ArgumentError
        If the name, or the file that it is a link to, ends as a table's files do.
    DataError
        As `dpreg.paths.ordinary`.
    """
    file = ordinary(path) or os.path.realpath(path)
    if _ending(os.fspath(path)) or _ending(os.fspath(file)):
        raise ArgumentError(
            f"{named(os.path.basename(path))} ends like a table's file, and could be read as part "
            f"of a table: choose a name that ends in none of {', '.join(_ENDINGS)}"
        )


def _check_once(paths: Sequence[str]) -> None:
    """Refuse a file that is named twice: its rows would count twice, and be protected once."""
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        first = seen.setdefault(identity(os.stat(path)), path)
        if len(seen) < len(paths) and first is not path:
            raise ArgumentError(
                f"data: {path!r} is the same file as {first!r}. Its rows would count twice, and a "
                "person's protection holds for rows that count once: name each file once"
            )


def _files(path: str | bytes) -> list[str]:
    text = os.fsdecode(path)
    if "\0" in text:
        raise DataError(f"{named(text)} is not a path: it holds a null character")
    if os.path.isdir(text):
        return _folder(text)
    if os.path.lexists(text):
        ordinary(text)  # a pipe would be waited on for ever
        return [text]
    if not glob.has_magic(text):
        raise DataError(f"there is no file {named(text)}")
    found = sorted(one for one in glob.glob(text, recursive=True) if os.path.isfile(one))
    if not found:
        raise DataError(f"no file matches {named(text)}")
    return found


def _folder(folder: str) -> list[str]:
    entries = sorted(Path(folder).iterdir(), key=lambda entry: entry.name)
    seen = [entry for entry in entries if not entry.name.startswith((".", "_"))]
    if any("=" in entry.name and entry.is_dir() for entry in seen):
        raise DataError(
            f"the folder {folder!r} is partitioned by the names of its folders, which would be a "
            "column: give a pyarrow.dataset of it, or a DuckDB relation"
        )
    found = [str(entry) for entry in seen if _ending(entry.name) is not None and entry.is_file()]
    if not found:
        raise DataError(f"the folder {folder!r} holds no Parquet and no CSV file")
    return found


def _ending(path: str) -> str | None:
    return next((kind for end, kind in _ENDINGS.items() if path.lower().endswith(end)), None)
