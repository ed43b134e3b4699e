"""Count code lines, modules and tuned numbers of dpreg, room by room, and lines of R.

    python scripts/count.py               # the table
    python scripts/count.py --numbers     # every number that counts as tuned, with its place
    python scripts/count.py looks choice  # of these rooms alone

A *code line* is one that holds code: blank lines, comments and docstrings are none, nor is the
string beneath an attribute or a constant. A *room* is a package right below dpreg; single modules
are one room, "base".

A *tuned number* is a literal that moves a released or printed number and follows from no
definition, no proof and no numerical precision. A program cannot know that, so this one takes every
numeric literal in the rooms that fit, choose, plan and tell (all but those of `OUTSIDE`, and pages
and plots, `STYLE`) that is

- in the value of a constant of a module or a class, each of a table, or
- the default of an argument or of a dataclass's field, or
- within a function,

and leaves out, by rule:

- 0, 1, 2, a half and their negatives anywhere, and within functions integers up to `SMALL`, as
  definitions are full of them; the level .05 of `alpha`;
- places and sizes: what stands in a subscript, in a type, in a text's format, or in an argument of
  `LAYOUT_CALLS` or `LAYOUT_KEYWORDS`;
- numerical precision and limits of work: what is at most `TINY` or at least `HUGE` in size, powers
  of two that are written as such (``2.0**-40``, ``1 << 18``) and what is computed from them, how
  many points a grid of NumPy's has, the range of exp (`RANGE`), and constants whose name says so
  (`EFFORT`);
- what a mark on its line, or on the first line of its statement, says is none: a comment
  ``# by definition``, ``# proved``, ``# precision`` or ``# work``, with more words if need be.

Literals that are computed with each other (``4 / 3``, ``10**6``, ``Fraction(15, 100)``) are one
number, and so is one that is written as text in ``Fraction("0.15")``.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTSIDE = frozenset(
    {
        *("audit", "base", "cli", "datasets", "design", "formula", "grouped", "ledger"),
        *("mechanisms", "privacy", "schema", "sources", "tables"),
        *("selection/scoring", "selection/tree", "lei2018/scoring", "lei2018/tree"),
    }
)
"""Rooms without tuned numbers: what they hold is proved, exact, a limit of work, or style."""
STYLE = re.compile(r"(^|_)(plots?|views|tables|summary|latex|codecs|saved|builder|pages?|report)$")
"""Modules of pages and plots."""
SMALL = 4
TINY, HUGE = 1e-6, 1e5
RANGE = frozenset({700, 708, 745})
EFFORT = re.compile(
    r"(^|_)(NODES|POINTS|MESH|HALVINGS|STEPS|ROUNDS|DRAWS|SEED|CELLS|WORK|BLOCK|PIECE|BATCH|BITS"
    r"|DIGITS|CACHE|SHOWN)(_|$)"
)
GRIDS = frozenset({"linspace", "geomspace", "logspace"})
LAYOUT_CALLS = frozenset({"range", "round", "reshape", "islice", "repeat", "lru_cache"})
LAYOUT_KEYWORDS = frozenset(
    {"axis", "ndmin", "stacklevel", "maxsize", "width", "indent", "timeout", "digits", "decimals"}
)
MARK = re.compile(r"#\s*(by definition|proved|precision|work)\b")


@dataclass(frozen=True, slots=True)
class Number:
    """A literal that counts as tuned, and where it stands."""

    room: str
    path: Path
    line: int
    kind: str
    text: str


def code_lines(source: str) -> int:
    """Return how many lines of a Python text hold code."""
    told: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and _is_text(node):
            told |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    skipped = {
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
        tokenize.ENDMARKER,
    }
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            held |= set(range(token.start[0], token.end[0] + 1))
    return len(held - told)


def _is_text(node: ast.AST) -> bool:
    """Whether a statement is a string alone."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def r_lines(source: str) -> int:
    """Return how many lines of an R text hold code."""
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") for line in source.split("\n")
    )


def room_of(path: Path) -> str:
    """Return the room of a module of dpreg."""
    inside = path.relative_to(ROOT / "dpreg").parts
    return inside[0] if len(inside) > 1 else "base"


def is_counted(path: Path) -> bool:
    """Whether the numbers of a module are counted."""
    inner = "/".join(path.relative_to(ROOT / "dpreg").parts[:2])
    return not (room_of(path) in OUTSIDE or inner in OUTSIDE or STYLE.search(path.stem))


def tuned(path: Path) -> Iterator[Number]:
    """Yield the numbers of a module that count as tuned."""
    source = path.read_text()
    lines = source.splitlines()
    for statement, kind, node in literals(ast.parse(source)):
        if _left_out(_folded(node), kind):
            continue
        if not any(MARK.search(lines[at - 1]) for at in (node.lineno, statement.lineno)):
            yield Number(room_of(path), path, node.lineno, kind, ast.unparse(node))


def _left_out(value: float | None, kind: str) -> bool:
    if value is None:
        return True
    size = abs(value)
    if size in (0, 1, 2, 0.5) or size <= TINY or size >= HUGE or size in RANGE:
        return True
    return kind == "inline" and isinstance(value, int) and size <= SMALL


def literals(tree: ast.Module) -> Iterator[tuple[ast.stmt, str, ast.expr]]:
    """Yield each literal, or what is computed of literals, its statement, and its kind of place."""
    for statement, kind in _statements(tree, "constant"):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            given = statement.args
            named = [*given.posonlyargs, *given.args]
            pairs = zip(named[::-1], given.defaults[::-1], strict=False)
            for name, default in (*pairs, *zip(given.kwonlyargs, given.kw_defaults, strict=True)):
                if default is not None and name.arg != "alpha":
                    for node in _within(default):
                        yield statement, "default", node
        elif not (kind == "constant" and EFFORT.search(_assigned(statement))):
            for child in _expressions(statement):
                for node in _within(child):
                    yield statement, kind, node


def _assigned(statement: ast.stmt) -> str:
    """Return the name that a statement gives a value to; "" if it is no single name."""
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""


def _statements(node: ast.AST, kind: str) -> Iterator[tuple[ast.stmt, str]]:
    """Yield every statement; within functions the kind is "inline"."""
    for child in ast.iter_child_nodes(node):
        inner = "inline" if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else kind
        if isinstance(child, ast.stmt):
            if not _is_text(child):
                yield child, kind
                yield from _statements(child, inner)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _statements(child, kind)


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield what a statement itself computes: neither its inner statements nor its types."""
    for name, field in ast.iter_fields(statement):
        if name in ("annotation", "bases", "decorator_list", "target", "targets"):
            continue
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.expr):
                yield child
            elif isinstance(child, ast.withitem):
                yield child.context_expr


def _within(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the literals of an expression, what is computed of them whole, places left out."""
    if isinstance(node, ast.expr) and _is_folded(node):
        yield node
        return
    if isinstance(node, ast.JoinedStr | ast.arguments):
        return
    called = _called(node) if isinstance(node, ast.Call) else ""
    for name, field in ast.iter_fields(node):
        if isinstance(node, ast.Subscript) and name == "slice":
            continue
        children = field if isinstance(field, list) else [field]
        if name == "args" and called in LAYOUT_CALLS:
            continue
        if name == "args" and called in GRIDS:
            children = children[:2]
        for child in children:
            if isinstance(child, ast.keyword) and child.arg in LAYOUT_KEYWORDS:
                continue
            if isinstance(child, ast.AST):
                yield from _within(child)


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_folded(node: ast.expr) -> bool:
    """Whether an expression is a number, or computed of numbers alone."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _is_folded(inner)
        case ast.BinOp(left=left, right=right):
            return _is_folded(left) and _is_folded(right)
        case ast.Call(args=[ast.Constant(value=str())]):
            return _called(node) == "Fraction"
        case ast.Call(args=[_, *_]):
            return _called(node) == "Fraction" and all(_is_folded(one) for one in node.args)
    return False


def _folded(node: ast.expr) -> float | None:
    """Return the number that an expression of literals is; None where a power of two is in it."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.left, ast.Constant):
            powers = isinstance(inner.op, ast.Pow) and inner.left.value == 2
            if powers or isinstance(inner.op, ast.LShift):
                return None
    made: float = eval(compile(ast.Expression(node), "", "eval"), {"Fraction": Fraction})
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="Count dpreg's code lines and tuned numbers.")
    parser.add_argument("rooms", nargs="*", help="only these rooms")
    parser.add_argument("--numbers", action="store_true", help="list every tuned number")
    asked = parser.parse_args()
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    numbers: list[Number] = []
    for path in sorted((ROOT / "dpreg").rglob("*.py")):
        room = room_of(path)
        if asked.rooms and room not in asked.rooms:
            continue
        lines[room] += code_lines(path.read_text())
        modules[room] += 1
        if is_counted(path):
            numbers += tuned(path)
    if asked.numbers:
        for one in numbers:
            print(f"{one.path.relative_to(ROOT)}:{one.line}: {one.kind}: {one.text}")
        return
    found = Counter(one.room for one in numbers)
    print(f"{'room':<12}{'lines':>8}{'modules':>9}{'tuned':>7}")
    for room in sorted(lines, key=lambda name: -lines[name]):
        count = "-" if room in OUTSIDE else str(found[room])
        print(f"{room:<12}{lines[room]:>8,}{modules[room]:>9}{count:>7}")
    print(f"{'all':<12}{sum(lines.values()):>8,}{sum(modules.values()):>9}{len(numbers):>7}")
    if not asked.rooms:
        r = sum(r_lines(path.read_text()) for path in (ROOT / "r_bridge").rglob("R/*.R"))
        print(f"{'R':<12}{r:>8,}")


if __name__ == "__main__":
    main()
