"""A table with the public facts that go with it.

Tested in `tests/datasets/test_datasets.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dpreg.schema import Schema

__all__ = ["Dataset"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """A table with the public facts that go with it.

    Attributes
    ----------
    data : pandas.DataFrame
        The rows. Each call of a loader makes a new frame.
    schema : Schema
        Public bounds and levels of the columns, for ``dp_select(..., schema=...)``.
    formula : str
        A formula to start with.
    source : str
        Where the rows come from, in a sentence.
    simulated : bool
        True where the rows are simulated and describe nobody.
    """

    data: pd.DataFrame
    schema: Schema
    formula: str
    source: str
    simulated: bool = False

    def __repr__(self) -> str:
        """Say what this is, without rows."""
        rows, columns = self.data.shape
        kind = "simulated rows" if self.simulated else "rows"
        return f"<Dataset: {rows:,} {kind}, {columns} columns. {self.source}>"
