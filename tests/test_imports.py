"""No module needs itself to be imported: not at the top of files, and not within functions."""

import subprocess
import sys
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def order(imported: dict[str, set[str]]) -> list[str]:
    return list(TopologicalSorter(imported).static_order())


def test_no_import_is_circular() -> None:
    """Imports within functions count: they are for libraries that not every call needs."""
    graph = grimp.build_graph("dpreg", exclude_type_checking_imports=True, cache_dir=None)
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(order(imported)) > 100


def test_a_circle_is_found() -> None:
    with pytest.raises(CycleError, match="cycle"):
        order({"a": {"b"}, "b": {"c"}, "c": {"a"}})


def test_what_is_slow_to_import_waits_until_it_is_needed() -> None:
    """The first fit in a fresh Python, or R, waits for the imports of `import dpreg`."""
    slow = ["scipy.stats", "scipy.optimize", "scipy.interpolate", "statsmodels", "matplotlib"]
    code = f"import sys, dpreg; print([name for name in {slow} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
