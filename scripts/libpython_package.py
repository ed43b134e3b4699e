"""Print the Debian package of this Python's shared library where the library is missing."""

import ctypes.util
import sys
import sysconfig
from pathlib import Path

name = "python{}.{}".format(*sys.version_info)
folder = sysconfig.get_config_var("LIBDIR") or ""
shared = sysconfig.get_config_var("Py_ENABLE_SHARED")
built = shared and any(Path(folder).glob(f"lib{name}*.so*"))
if not built and ctypes.util.find_library(name) is None:
    print(f"lib{name}")
