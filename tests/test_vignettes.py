"""The vignettes run as pasted, in time, and quote no number that no cell checks.

`make docs` runs all of them in Jupyter, where an error or a warning ends it. Here they run as plain
Python, hidden assertions included: two each day, all of them by `make vignettes`.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "vignettes"
PAGES = sorted(FOLDER.glob("*.md"))
DAILY = ("desk", "quickstart")
SECONDS = 40
"""Of processor time, so that a busy machine does not make a page slow."""

_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TAGS = re.compile(r"^:tags: \[(.*)\]\n", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.,/(\[-])\d[\d,]*(?:\.\d+)?(?![\w/])")
_YEAR = re.compile(r"(19|20)\d\d")


def cells(text: str) -> list[tuple[set[str], str]]:
    """Return each code cell's tags and code."""
    found = []
    for body in _CELL.findall(text):
        tags = _TAGS.match(body)
        names = {tag.strip() for tag in tags.group(1).split(",")} if tags else set()
        found.append((names, _TAGS.sub("", body, count=1)))
    return found


def script(text: str) -> str:
    """Write the cells one after another; a cell that is to raise has to raise."""
    parts = []
    for tags, code in cells(text):
        if "raises-exception" in tags:
            body = "".join(f"    {line}\n" for line in code.splitlines())
            code = (
                f"try:\n{body}except Exception as error:\n    print(error)\n"
                "else:\n    raise SystemExit('a cell should have raised')\n"
            )
        parts.append(code)
    return "\n".join(parts)


def prose(text: str) -> str:
    """Return what is neither code nor address nor heading of the file."""
    text = text.split("---\n", 2)[2]
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\]\([^)]*\)|`[^`]*`|^ *\d\. ", "", text, flags=re.MULTILINE)


def test_there_are_vignettes() -> None:
    assert PAGES


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[] if page.stem in DAILY else pytest.mark.audit)
        for page in PAGES
    ],
)
def test_a_vignette_runs_as_pasted(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = page.read_text(encoding="utf-8")
    if "data: by hand" in text:
        request.getfixturevalue("data_folder")
    file = tmp_path / f"{page.stem.replace('-', '_')}.py"
    file.write_text(script(text), encoding="utf-8")
    environment = {**os.environ, "MPLBACKEND": "agg", "OPENBLAS_NUM_THREADS": "1"}
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-W", "error", file.name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=4 * SECONDS,
        check=False,
    )
    after = os.times()
    assert done.returncode == 0, done.stderr[-3000:]
    used = after.children_user + after.children_system
    assert used - before.children_user - before.children_system < SECONDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_number_that_is_quoted_is_checked(page: Path) -> None:
    """A number of the prose stands in a cell: in an argument that is shown, or in an assertion."""
    text = page.read_text(encoding="utf-8")
    known: set[str] = set()
    for _, code in cells(text):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Constant) and not isinstance(node.value, bytes):
                known.update(re.findall(r"\d[\d,]*(?:\.\d+)?", str(node.value)))
        known.update(re.findall(r"\d[\d,_]*(?:\.\d+)?", code.replace("_", "")))
    plain = {number.replace(",", "") for number in known}
    quoted = [number.rstrip(",") for number in _NUMBER.findall(prose(text))]
    loose = {
        number
        for number in quoted
        if number.replace(",", "") not in plain
        and not _YEAR.fullmatch(number)
        and not (number.isdigit() and int(number) < 4)
    }
    assert not loose, f"numbers in the prose that no cell holds: {sorted(loose)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_hidden_assertion_compares_is_in_the_prose(page: Path) -> None:
    """`assert f"{x:.3f}" == "0.129"` is about a sentence that says 0.129."""
    text = page.read_text(encoding="utf-8")
    said = prose(text)
    for tags, code in cells(text):
        if "remove-cell" not in tags:
            continue
        for node in ast.walk(ast.parse(code)):
            if not (isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq)):
                continue
            right = node.comparators[0]
            if isinstance(right, ast.Constant) and isinstance(right.value, str):
                number = re.fullmatch(r"-?\d[\d,]*\.\d+|\d[\d,]{2,}", right.value)
                assert not number or right.value in said, f"{right.value} is checked, not said"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_seed_comes_with_its_warning(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "unsafe_seed=" in text:
        assert "A fixed seed voids privacy" in text


def test_files_that_a_page_names_exist() -> None:
    root = FOLDER.parent
    pages = [*PAGES, *(root / "docs").glob("*.md"), root / "CONTRIBUTING.md", root / "README.md"]
    named = {
        (page.name, name)
        for page in pages
        for name in re.findall(
            r"`((?:dpreg|tests|benchmarks)/[\w/]+\.(?:py|toml))`", page.read_text()
        )
    }
    assert len(named) > 20
    assert not {(page, name) for page, name in named if not (root / name).is_file()}


def test_the_check_of_numbers_can_fail(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("---\n---\n# Title\n\nIt is 0.417.\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"0\.417"):
        test_every_number_that_is_quoted_is_checked(page)
