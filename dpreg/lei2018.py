"""The methods of Lei, Charest, Slavkovic, Smith and Fienberg (2018), by their names there.

Tested in `tests/test_options.py`.
"""

from dpreg.options import PCLS, PCPL

__all__ = ["PCLS", "PCPL"]
