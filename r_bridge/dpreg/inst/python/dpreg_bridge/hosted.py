"""What R needs when Python hosts it.

rpy2 releases Python's lock (the GIL) around each call into R, and the finalizers that reticulate
1.28 hangs on its objects drop Python references without taking it. R may run finalizers whenever it
collects garbage, so those that opening the door left behind are run here, with the lock held; those
that are left for R's end likewise, before rpy2 ends R.
"""

from __future__ import annotations

import atexit
import ctypes
from pathlib import Path

from rpy2.rinterface_lib import openrlib

_settled = False


def settle() -> None:
    """Run R's finalizers under Python's lock, now and at the end."""
    global _settled
    library = ctypes.PyDLL(str(Path(str(openrlib.R_HOME), "lib", "libR.so")))
    library.R_gc()
    if not _settled:
        _settled = True
        atexit.register(library.R_RunExitFinalizers)
