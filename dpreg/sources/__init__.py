"""Any table becomes passes over plain columns, and each cell is read on its own.

The meaning of a cell depends on the cell and on how its column is declared, never on other cells:
`dpreg.cells` says what each kind of cell means. What a pass is: `dpreg.sources.base`.

Names of columns are public facts, and dtypes are not: what is public about a table, and what
enforces it, is there too.

One module a kind of table: `table` for pandas and mappings, `opened` for callables, `arrow` for
Arrow streams and Parquet, `csv_files`, `rpy` for R's, `dask` and `spark` for clusters. The
libraries that these need are imported when such a table comes along, and not before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import pandas as pd

from dpreg.errors import ArgumentError
from dpreg.sources.base import Chunk, Integers, LocalSource, Piece, Source
from dpreg.sources.table import frame_source, mapping_source

__all__ = ["Chunk", "Integers", "LocalSource", "Piece", "Source", "as_source"]


def as_source(data: object, *, hold: bool = True) -> Source:
    """Take a table as a `Source`.

    Parameters
    ----------
    data : table
        - pandas.DataFrame;
        - mapping of str to one-dimensional arrays or lists: arrays and Series keep their dtype (an
          index is disregarded), lists and tuples become object columns, so that no dtype is
          inferred from their cells;
        - path, or glob, of Parquet or CSV files (str or os.PathLike), or a list of paths;
        - any object with ``__arrow_c_stream__``: a Polars frame, a DuckDB relation, a pyarrow
          table, reader or Dataset (not of CSV or JSON files);
        - rpy2's data frame of R, which is copied;
        - Dask DataFrame, PySpark DataFrame: read where the rows are;
        - callable without arguments that returns an iterable of tables of the kinds above (chunks
          of one table), called anew for each pass;
        - Source.
    hold : bool
        Whether a call that goes through the rows several times may keep those of text, streams,
        queries and functions (`dpreg.sources.kept`): what it needs of up to 512 MB in memory, of
        more in a temporary file that nobody else can open and that goes with the call. Otherwise
        they are read anew for each pass, and what can be read once serves for one. Numbers do not
        depend on it: a minimum, which goes through few rows, holds them all the same.

    Returns
    -------
    Source

    Raises
    ------
    DataError
        If the table cannot be opened, or has column labels of several levels, or columns of
        different lengths.
    ArgumentError
        If `data` is none of these, or a library that it needs is not installed.
    """
    if not isinstance(hold, bool):
        raise ArgumentError("hold must be True or False")
    paths = data if isinstance(data, list | tuple) and data else [data]
    source: Source
    if isinstance(data, pd.DataFrame):
        source = frame_source(data)
    elif type(data).__name__ == "LazyFrame":
        raise ArgumentError(
            "data is a LazyFrame, whose rows are not computed yet: call .collect() on it, and give "
            "what that returns"
        )
    elif isinstance(data, Mapping):
        source = mapping_source(data)
    elif all(isinstance(one, str | os.PathLike) for one in paths):
        from dpreg.sources.files import file_source

        source = file_source(data)
    elif _comes_from(data, "dask"):
        from dpreg.sources.dask import dask_source

        source = dask_source(data)
    elif _comes_from(data, "pyspark"):
        from dpreg.sources.spark import spark_source

        source = spark_source(data)
    elif isinstance(data, Source):
        source = data
    elif _comes_from(data, "rpy2") and type(data).__name__ == "DataFrame":
        from dpreg.sources.rpy import rpy_source

        source = rpy_source(data)
    elif hasattr(data, "__arrow_c_stream__") or _comes_from(data, "pyarrow"):
        from dpreg.sources.arrow import stream_source

        source = stream_source(data)
    elif callable(data):
        from dpreg.sources.opened import OpenedSource

        source = OpenedSource(data, as_source)
    else:
        raise ArgumentError(
            f"data is a {type(data).__name__}: give a pandas DataFrame, a mapping of names to "
            "arrays, the path of a Parquet or CSV file, an Arrow, Polars or DuckDB table, a Dask "
            "or Spark DataFrame, or a function that returns chunks of one"
        )
    if not hold and isinstance(source, LocalSource):
        source.hold = False
    return source


def _comes_from(data: object, library: str) -> bool:
    return type(data).__module__.partition(".")[0] in (library, f"{library}_expr")
