"""rpy2's low-level interface to R, as `R`: the only import of rpy2.

It is used without its types, which name less than it exports.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any, Final


def _mode() -> str:
    """Name the mode that rpy2 was built in: without a compiled part where there are both.

    rpy2 would try the compiled part first, and print an error at each start where it is missing.
    """
    built = {m for m in ("ABI", "API") if importlib.util.find_spec(f"_rinterface_cffi_{m.lower()}")}
    asked = os.environ.get("RPY2_CFFI_MODE", "").upper()
    if asked in built:
        return asked
    return "API" if built == {"API"} else "ABI"


os.environ["RPY2_CFFI_MODE"] = _mode()

from rpy2 import rinterface  # noqa: E402 (reads the variable)
from rpy2.rinterface_lib import ffi_proxy  # noqa: E402

__all__ = ["ENTRANCE", "R"]

R: Final[Any] = rinterface

ENTRANCE: Final = str(ffi_proxy.__file__)
"""The file of the function by which R calls Python."""
