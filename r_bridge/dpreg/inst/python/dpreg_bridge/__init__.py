"""R's side of dpreg in Python: the only code that imports rpy2.

R starts Python in its own process (or Python hosts R) and calls `open_door`, which attaches rpy2 to
the running R and leaves in the environment `dpreg:::the` one R function, ``door``. Every call goes
through it: `columns` and `values` turn what R sent into Python, `expressions` reads R's formulas,
`calls` and `verbs` call dpreg, `views` says what R gets to see of the result, and `words` how R
calls it.
"""

from __future__ import annotations

from typing import Any

from dpreg_bridge.calls import answer
from dpreg_bridge.finalizers import find, guard, guarded
from dpreg_bridge.interrupts import leave_to_r, outsiders_interrupts
from dpreg_bridge.rpy import ENTRANCE, R

__all__ = ["open_door"]

_kept: list[Any] = []
"""R aborts when it calls a closure whose Python function was collected: these never are."""


def open_door(reticulate: str) -> None:
    """Attach rpy2 to the R of this process and give the R package its way in.

    Parameters
    ----------
    reticulate : str
        Path of reticulate's shared library.
    """
    find(reticulate)
    if R.embedded.isinitialized() and not _kept:  # Python hosts R, and calls it at any time
        guard()
    with guarded():
        with outsiders_interrupts():
            R.initr()
        if not _kept:
            with outsiders_interrupts(python=False):
                leave_to_r(ENTRANCE)
        if not _kept:
            _kept.append(R.rternalize(answer))
        package = R.baseenv["asNamespace"](R.StrSexpVector(["dpreg"]))
        package["the"]["door"] = _kept[0]
