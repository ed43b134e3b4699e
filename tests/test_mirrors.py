"""Where each module is tested: in the folder of its room, or where its docstring says."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    path.relative_to(ROOT / "dpreg")
    for path in (ROOT / "dpreg").rglob("*.py")
    if path.name != "__init__.py"
)
SAYS = re.compile(r"\bTested in (`tests/[a-z0-9_/]+\.py`(?:(?:,| and|, and) `[^`]+`)*)\.")


def named(docstring: str) -> list[str]:
    """Return the paths that a docstring names as the place of its tests."""
    said = SAYS.search(" ".join(docstring.split()))
    return re.findall("`([^`]+)`", said.group(1)) if said else []


@cache
def imported(room: str) -> frozenset[str]:
    """Return what the tests of a room import: modules, and names of modules."""
    folder = ROOT / "tests" / room
    paths = folder.rglob("test_*.py") if room else folder.glob("test_*.py")
    names: set[str] = set()
    for node in (node for path in paths for node in ast.walk(ast.parse(path.read_text()))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return frozenset(names)


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_is_tested_where_one_would_look(module: Path) -> None:
    room = module.parts[0] if len(module.parts) > 1 else ""
    docstring = ast.get_docstring(ast.parse((ROOT / "dpreg" / module).read_text())) or ""
    places = named(docstring)
    name = ".".join(["dpreg", *module.with_suffix("").parts])
    mirrored = ROOT / "tests" / module.parent / f"test_{module.name}"
    assert places or mirrored.exists() or name in imported(room), (
        f"dpreg/{module} needs {mirrored.relative_to(ROOT)}, a test beside it that imports it, or "
        "a sentence in its docstring: Tested in `tests/...`."
    )
    for place in places:
        assert (ROOT / place).exists(), place


def test_the_sentence_is_read() -> None:
    assert named("Words.\n\nTested in `tests/a.py` and\n`tests/b/c_d.py`.") == [
        "tests/a.py",
        "tests/b/c_d.py",
    ]
    assert named("Nothing is said.") == []


def test_imports_are_read() -> None:
    assert {"dpreg.errors", "dpreg.errors.ArgumentError"} <= imported("estimation")
