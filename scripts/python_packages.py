"""Print the Debian packages that R needs of this Python and that are missing.

They are the shared library, which reticulate loads, and the headers, by which rpy2 is compiled.
"""

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
if not Path(sysconfig.get_config_var("INCLUDEPY"), "Python.h").exists():
    print(f"{name}-dev")
