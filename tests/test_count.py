"""`scripts/count.py`, on modules that hold one thing each."""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "count.py"
spec = importlib.util.spec_from_file_location("count_script", SCRIPT)
assert spec is not None
assert spec.loader is not None
count = importlib.util.module_from_spec(spec)
sys.modules["count_script"] = count
spec.loader.exec_module(count)


def tuned(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    module = tmp_path / "dpreg" / "looks" / "law.py"
    module.parent.mkdir(parents=True)
    module.write_text(source)
    monkeypatch.setattr(count, "ROOT", tmp_path)
    assert count.is_counted(module)
    return [number.text for number in count.tuned(module)]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("_SHARE: Final = 0.16", ["0.16"]),
        ("_SHARES = {'a': Fraction(15, 100), 'b': -0.3}", ["Fraction(15, 100)", "-0.3"]),
        ("_LEVEL = 4 / 3\n_TEXT = Fraction('0.15')", ["4 / 3", "Fraction('0.15')"]),
        ("_MOST = 10**7\n_LEAST = 1e-9\n_GRID = 1.5 * 2.0**-40\n_CELL = 1 << 18", []),
        ("_NODES = 256\n_HALF = 0.5\n_TWO = 2.0", []),
        ("_ROUNDS = 4\n_FEW = 4", ["4"]),
        ("def f(share=0.3, *, times: int = 7, alpha=0.05): pass", ["0.3", "7"]),
        ("class Law:\n    cut: float = 1.7", ["1.7"]),
        ("def f(x):\n    return 0.7 * x**3 + 4 * x[5] + 6", ["0.7", "6"]),
        ("def f(x):\n    return np.linspace(0.8, 9.0, 80).sum(axis=3)", ["0.8", "9.0"]),
        ("def f(x):\n    with g(3.5):\n        if x > 7.5: return f'{x:8.3f}'", ["3.5", "7.5"]),
        ("def f(x: Literal[12]) -> Annotated[float, 13]:\n    'the 14th'\n    return x", []),
        ("def f(x):\n    return [y for y in x if y < 0.9]", ["0.9"]),
        ("def f(x):\n    return sorted(x, key=lambda z: z * 3.1)", ["3.1"]),
        ("def f(x):\n    return 1.96 * x  # by definition: the normal law's", []),
        ("def f(x):\n    return 1.96 * x  # how they work", ["1.96"]),
        ("T = (  # proved: Fang (2020)\n    0.3,\n    0.4,\n)", []),
        ("try:\n    A = 0.3\nexcept E:\n    B = 0.4", ["0.3", "0.4"]),
        ("match A:\n    case 8:\n        C = 9", ["9"]),
    ],
)  # fmt: skip
def test_a_number_counts_where_a_room_fits(source, found, tmp_path, monkeypatch) -> None:
    ast.parse(source)
    assert tuned(source, tmp_path, monkeypatch) == found


def test_rooms_that_prove_and_pages_are_not_counted(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(count, "ROOT", tmp_path)
    for module in ("privacy/a.py", "selection/tree/a.py", "results/tables.py", "schema.py"):
        assert not count.is_counted(tmp_path / "dpreg" / module), module
    for module in ("looks/a.py", "selection/a.py", "results/notes.py"):
        assert count.is_counted(tmp_path / "dpreg" / module), module


def test_code_lines_are_neither_blank_nor_told() -> None:
    told = '"""A page.\n\nTwo.\n"""\n\n# why\n'
    constant = 'X = 1  # one\n"""Beneath."""\n\n\n'
    function = 'def f(\n    x,\n):\n    """Say."""\n    return """a\n\nb"""\n'
    source = told + constant + function
    assert count.code_lines(source) == 1 + 3 + 3
    assert count.r_lines("# a\n\nf <- function(x) {\n  # b\n  x # c\n}\n") == 3


def test_the_package_is_counted_whole(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["count.py"])
    count.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    table = {row[0]: row for row in rows[1:]}
    modules = list((count.ROOT / "dpreg").rglob("*.py"))
    assert int(table["all"][2]) == len(modules)
    assert int(table["all"][1].replace(",", "")) == sum(
        count.code_lines(path.read_text()) for path in modules
    )
    monkeypatch.setattr(sys, "argv", ["count.py", "--numbers"])
    count.main()
    assert len(capsys.readouterr().out.splitlines()) == int(table["all"][3])


FITTING = ("looks", "choice", "estimation", "selection")


def undocumented(path: Path) -> list[str]:
    """The tuned numbers of a module that stand where no table says what they are."""
    source = path.read_text()
    lines, tree = source.splitlines(), ast.parse(source)
    said = ast.get_docstring(tree) or ""
    told: set[int] = set()
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        text = count._is_text(after) and after.value.value if after is not None else ""
        if isinstance(node, ast.ClassDef) and node.name == "Tuning":
            text = ast.get_docstring(node) or ""
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and re.search(rf"\b{field.target.id}\b", text):
                    told |= set(range(field.lineno, field.end_lineno + 1))
        elif text and "python -m benchmarks." in text:
            told |= set(range(node.lineno, node.end_lineno + 1))
    if (
        path.name == "tuning.py"
        and "class Tuning:" in source
        and "python -m benchmarks." not in said + source
    ):
        return ["no command in the module"]
    return [
        f"{path.name}:{number.line}: {lines[number.line - 1].strip()}"
        for number in count.tuned(path)
        if number.line not in told
    ]


@pytest.mark.parametrize("room", FITTING)
def test_a_tuned_number_stands_in_its_rooms_table_with_its_command(room: str) -> None:
    modules = list((count.ROOT / "dpreg" / room).rglob("*.py"))
    assert modules
    assert [line for path in modules if count.is_counted(path) for line in undocumented(path)] == []


def test_a_number_without_its_words_is_seen(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(count, "ROOT", tmp_path)
    module = tmp_path / "dpreg" / "looks" / "a.py"
    module.parent.mkdir(parents=True)
    bare, said = "_SHARE: Final = 0.16\n", '"""By `python -m benchmarks.looks`, 2026-11."""\n'
    table = '"""python -m benchmarks.looks"""\nclass Tuning:\n    """{}"""\n    a: float = 0.3\n'
    for source, seen in (
        (bare, 1), (bare + said, 0), (bare + '"""A share."""\n', 1),
        (table.format("a : float"), 0), (table.format("Of rows."), 1),
    ):  # fmt: skip
        module.write_text(source)
        assert len(undocumented(module)) == seen, source
