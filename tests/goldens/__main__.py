"""Compare, show or write goldens; see `goldens.runner`.

``python -m goldens`` says which moved. With --show they are printed, with --diff beside those of
the commit that wrote them last, with --write written anew. Words pick the goldens whose name holds
one of them; --diff without words takes those that moved.
"""

import argparse
import sys

from goldens import runner


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m goldens", description=__doc__)
    parser.add_argument("words", nargs="*", help="only goldens whose name holds one of these")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--show", action="store_true", help="print them, whole")
    how.add_argument("--diff", action="store_true", help="print how they differ from before")
    how.add_argument("--write", action="store_true", help="write them anew")
    asked = parser.parse_args()
    every = runner.makers()
    names = [n for n in every if not asked.words or any(word in n for word in asked.words)]
    if asked.show:
        print(runner.shown(names))
        return 0
    if asked.write:
        kept = {n: parts for n, parts in runner.recorded().items() if n in every}
        runner.written({**kept, **{name: runner.hashed(every[name]()) for name in names}})
        return 0
    moved = {name: parts for name in names if (parts := runner.moved(name))}
    if asked.diff and (told := names if asked.words else list(moved)):
        print(runner.difference(told))
        return 0
    for name, parts in moved.items():
        print(f"{name}: {', '.join(parts)}")
    print(f"{len(moved)} of {len(names)} goldens moved")
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())
