"""rpy2's low-level interface to R, as `R`: the only import of rpy2.

It is used without its types, which name less than it exports.
"""

from __future__ import annotations

import os
from typing import Any, Final

# Without a compiled part rpy2 would try it first and print an error at each start.
os.environ.setdefault("RPY2_CFFI_MODE", "ABI")

from rpy2 import rinterface
from rpy2.rinterface_lib import ffi_proxy

__all__ = ["ENTRANCE", "R"]

R: Final[Any] = rinterface

ENTRANCE: Final = str(ffi_proxy.__file__)
"""The file of the function by which R calls Python."""
