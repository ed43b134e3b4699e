"""The one place that imports pyarrow, and says what to install where it is missing.

Tested in `tests/sources/test_arrow.py`.
"""

from __future__ import annotations

from dpreg.errors import ArgumentError

try:
    import pyarrow as pa
    import pyarrow.compute as compute
except ImportError as missing:
    raise ArgumentError(
        "this kind of table is read through pyarrow, which is not installed: "
        "pip install 'dpreg[arrow]'"
    ) from missing

__all__ = ["compute", "pa"]
