from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from dpreg.errors import ArgumentError
from dpreg.paths import read_text
from dpreg.results import saved
from dpreg.results.base import KINDS

if TYPE_CHECKING:
    from dpreg.results.classic import ClassicResults, HistogramResults
    from dpreg.results.regression import RegressionResults
    from dpreg.results.selection import SelectionResults


def from_json(text: str) -> ClassicResults | HistogramResults | RegressionResults | SelectionResults:
    """Read a result of any kind from the text that `to_json` wrote.

    Raises
    ------
    ArgumentError
        Where the text is not a result of this version, naming the field that is wrong.
    """
    kind = saved.loads(text)["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise ArgumentError(f"this version of dpreg knows no saved results of kind {kind!r}")
    found: Any = KINDS[kind].from_json(text)
    return found


def load(path: str | os.PathLike[str]) -> ClassicResults | HistogramResults | RegressionResults | SelectionResults:
    """Read a result from the file that `save` wrote. Runs no code from it.

    Raises
    ------
    DataError
        Where there is no such file, it is not a regular one, or may not be read.
    ArgumentError
        Where it holds no result, or one of a newer version.
    """
    return from_json(read_text(path))
