"""Reading a saved result of whatever kind.

Tested in `tests/results/test_serialize.py`.
"""

from __future__ import annotations

import os

from dpreg.errors import ArgumentError
from dpreg.paths import read_text
from dpreg.results import serialize
from dpreg.results.classic import ClassicResults
from dpreg.results.glm import GLMResults
from dpreg.results.glm_selection import GLMSelectionResults
from dpreg.results.histogram import HistogramResults
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import SelectionResults

__all__ = ["from_json", "load"]

Result = SelectionResults | RegressionResults | ClassicResults | HistogramResults

_KINDS: dict[str, type[Result]] = {
    kind.kind: kind
    for kind in (
        ClassicResults,
        GLMResults,
        GLMSelectionResults,
        HistogramResults,
        RegressionResults,
        SelectionResults,
    )
}


def from_json(text: str) -> Result:
    """Read a result of any kind from the text that `to_json` wrote.

    Raises
    ------
    ArgumentError
        Where the text is not a result of this version, naming the field that is wrong.
    """
    kind = serialize.loads(text)["kind"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ArgumentError(f"this version of dpreg knows no saved results of kind {kind!r}")
    return _KINDS[kind].from_json(text)


def load(path: str | os.PathLike[str]) -> Result:
    """Read a result from the file that `save` wrote. Runs no code from it.

    Raises
    ------
    DataError
        Where there is no such file, it is not a regular one, or may not be read.
    ArgumentError
        Where it holds no result, or one of a newer version.
    """
    return from_json(read_text(path))
