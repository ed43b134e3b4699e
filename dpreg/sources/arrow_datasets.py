"""Datasets of pyarrow: each file is read in its own types.

A whole dataset is read in the types of its first file, and one cell of another file that cannot be
turned into them ends the pass. So files are read one by one.

Files of text are refused: Arrow's CSV reader stops at a row with too many or too few cells, and a
quote that is never closed takes other rows with it; its JSON reader stops at a line that it cannot
parse. No single row may decide whether a call ends in an error. dpreg's own CSV reader takes paths.

Tested in `tests/sources/test_arrow.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyarrow import dataset

from dpreg.errors import ArgumentError
from dpreg.sources.arrow_library import pa

__all__ = ["check_formats", "dataset_batches"]

_ROWS = 1 << 15
_BUFFER = 1 << 18


def check_formats(data: dataset.Dataset) -> None:
    """Refuse a dataset that has files of text, filtered or not.

    Raises
    ------
    ArgumentError
    """
    for part in getattr(data, "children", ()):
        check_formats(part)
    found = getattr(data, "format", None)
    if isinstance(found, dataset.CsvFileFormat | dataset.JsonFileFormat):
        name = type(found).__name__.removesuffix("FileFormat").upper()
        raise ArgumentError(
            f"data is a pyarrow.dataset with {name} files, of which a single row could end the "
            "call after the charge: give the paths of CSV files (data.files), or Parquet files"
        )


def dataset_batches(data: dataset.Dataset, columns: Sequence[str]) -> Iterator[Any]:
    """Open a dataset and return its record batches, which may differ in their types.

    Parameters
    ----------
    data : pyarrow.dataset.Dataset
        One with a filter is read as a whole, in its own types: it does not tell of its files.
    columns : sequence of str
        Each a name that the dataset has once.
    """
    # Arrow's defaults keep hundreds of megabytes in flight.
    options: dict[str, Any] = {"batch_readahead": 1, "fragment_readahead": 0}
    options |= {"columns": list(columns), "batch_size": _ROWS}
    try:
        fragments = iter(data.get_fragments())
    except ValueError:
        return iter(data.to_batches(**options, **_buffered(data)))
    return (
        batch
        for part in fragments
        for batch in part.to_batches(
            _types(part, data.schema, columns), **options, **_buffered(part)
        )
    )


def _buffered(data: Any) -> dict[str, Any]:
    if not isinstance(getattr(data, "format", None), dataset.ParquetFileFormat):
        return {}
    scan = dataset.ParquetFragmentScanOptions(
        use_buffered_stream=True, buffer_size=_BUFFER, pre_buffer=False
    )
    return {"fragment_scan_options": scan}


def _types(part: Any, schema: Any, columns: Sequence[str]) -> Any:
    """Return the types to read a file's columns in.

    What the file lacks, the dataset knows from the names of folders, or it is missing.
    """
    own = part.physical_schema
    fields = []
    for name in columns:
        places = own.get_all_field_indices(name)
        fields.append(own.field(places[0]) if len(places) == 1 else schema.field(name))
    return pa.schema(fields)
