"""Run the vignettes again, and print each exact number that they assert; --write puts it right.

    PYTHONPATH=tests python scripts/pages_numbers.py [--write] [PAGE ...]

A hidden `assert f"{x:.2f}" == "0.98"` is about a sentence that says 0.98. Here such an assertion
takes the number down instead; others, mostly ranges, are left to `make vignettes`. Read a page
that was rewritten.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from test_vignettes import PAGES, script

_CODE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


class _Taken(ast.NodeTransformer):
    """Turns an assertion into a list of what it quotes, and what that is now."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        pairs = [
            ast.Tuple([part.comparators[0], part.left], ast.Load())
            for part in ast.walk(node.test)
            if isinstance(part, ast.Compare)
            and isinstance(part.ops[0], ast.Eq)
            and isinstance(part.left, ast.JoinedStr)
            and isinstance(part.comparators[0], ast.Constant)
        ]
        return ast.AugAssign(
            ast.Name("_taken", ast.Store()), ast.Add(), ast.List(pairs, ast.Load())
        )


def asserted(text: str) -> list[tuple[str, str]]:
    """Return what a page quotes, and what it should quote: its exact numbers, run anew."""
    tree = ast.fix_missing_locations(_Taken().visit(ast.parse(script(text))))
    code = "_taken = []\n" + ast.unparse(tree) + "\nimport json as _json\n"
    with tempfile.TemporaryDirectory() as folder:
        numbers = Path(folder, "numbers.json")
        code += f"open({str(numbers)!r}, 'w').write(_json.dumps(_taken))\n"
        Path(folder, "page.py").write_text(code, encoding="utf-8")
        subprocess.run(
            [sys.executable, "page.py"],
            cwd=folder,
            env={**os.environ, "MPLBACKEND": "agg"},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return [(said, now) for said, now in json.loads(numbers.read_text())]


def rewritten(text: str, pairs: list[tuple[str, str]]) -> str:
    """Return the page with each number in its assertion and in the prose as it is now."""
    parts = _CODE.split(text)
    for said, now in pairs:
        number = re.compile(rf"(?<![\d.,]){re.escape(said)}(?!\d|[.,]\d)")
        for at, part in enumerate(parts):
            if _CODE.fullmatch(part):
                parts[at] = part.replace(f'== "{said}"', f'== "{now}"')
            else:
                parts[at] = number.sub(now, part)
    return "".join(parts)


def main(arguments: list[str]) -> int:
    names = [name for name in arguments if name != "--write"]
    moved = 0
    for page in PAGES:
        if names and page.stem not in names:
            continue
        text = page.read_text(encoding="utf-8")
        pairs = asserted(text)
        for said, now in pairs:
            print(f"{page.stem}: {now}" + ("" if said == now else f" (the page says {said})"))
        changed = [(said, now) for said, now in pairs if said != now]
        moved += len(changed)
        if changed and "--write" in arguments:
            page.write_text(rewritten(text, changed), encoding="utf-8")
    return int(bool(moved) and "--write" not in arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
