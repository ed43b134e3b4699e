"""Where each module is tested: in the file that mirrors it, or where its docstring says."""

import ast
import re
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


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_is_tested_where_one_would_look(module: Path) -> None:
    mirrored = ROOT / "tests" / module.parent / f"test_{module.name}"
    docstring = ast.get_docstring(ast.parse((ROOT / "dpreg" / module).read_text())) or ""
    places = named(docstring)
    assert mirrored.exists() != bool(places), (
        f"dpreg/{module} needs {mirrored.relative_to(ROOT)}, or a sentence in its docstring: "
        "Tested in `tests/...`. (Not both.)"
    )
    for place in places:
        assert (ROOT / place).exists(), place


def test_the_sentence_is_read() -> None:
    assert named("Words.\n\nTested in `tests/a.py` and\n`tests/b/c_d.py`.") == [
        "tests/a.py",
        "tests/b/c_d.py",
    ]
    assert named("Nothing is said.") == []
