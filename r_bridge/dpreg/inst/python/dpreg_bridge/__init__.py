"""R's side of dpreg in Python: the only code that imports rpy2.

R starts Python in its own process (or Python hosts R) and calls `open_door`, which attaches rpy2 to
the running R and leaves in the environment `dpreg:::the` one R function, ``door``. Every call goes
through it: `columns` and `values` turn what R sent into Python, `calls` and `verbs` call dpreg,
`views` says what R gets to see of the result.
"""

from __future__ import annotations

from typing import Any

from dpreg_bridge.calls import answer
from dpreg_bridge.rpy import R

__all__ = ["open_door"]

_kept: list[Any] = []
"""R aborts when it calls a closure whose Python function was collected: these never are."""


def open_door() -> None:
    """Attach rpy2 to the R of this process and give the R package its way in."""
    R.initr()
    if not _kept:
        _kept.append(R.rternalize(_door))
    package = R.baseenv["asNamespace"](R.StrSexpVector(["dpreg"]))
    package["the"]["door"] = _kept[0]


def _door(errand: Any, request: Any) -> Any:
    """Do what R asks for; nothing may leave here as an exception, which R would see as NULL."""
    if errand[0] == "settle":
        from dpreg_bridge.hosted import settle

        settle()
        return R.NULL
    return answer(request)
