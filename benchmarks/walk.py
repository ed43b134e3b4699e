"""Which modules and functions of dpreg one call executes: how much a reader has to walk through.

Each call is made twice, and the second is watched by `sys.setprofile`, so that what is imported or
kept at a first call does not count. Comprehensions, generator expressions and lambdas count with
the function that holds them; the last column has them apart, as Python 3.11 calls them. Methods
that dataclasses write are nobody's to read and do not count.

    python -m benchmarks.walk            # the table
    python -m benchmarks.walk --modules  # and for each call its modules, with their functions
"""

import argparse
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import dpreg

HOME = Path(dpreg.__file__).parent
INNER = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<lambda>"})
GOALS = {"dp_ols": (45, 280), "dp_select": (60, 350)}
"""Modules and functions that the rewriting of the package is to end with."""

Walk = dict[str, set[CodeType]]


def walked(call: Callable[[], object]) -> Walk:
    """Return the functions of dpreg that a second call executes, by module."""
    call()
    codes: set[CodeType] = set()

    def seen(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    found: Walk = defaultdict(set)
    for code in codes:
        path = Path(code.co_filename)
        if path.is_relative_to(HOME) and code.co_name != "<module>":
            found[path.relative_to(HOME).with_suffix("").as_posix()].add(code)
    return found


def functions(codes: set[CodeType]) -> list[str]:
    """Return the names of the functions among what was executed, each with its line."""
    return sorted(
        f"{code.co_qualname}:{code.co_firstlineno}" for code in codes if code.co_name not in INNER
    )


def calls() -> dict[str, Callable[[], object]]:
    """Return the calls: the RAND data at eps = 1 and delta = 1e-6."""
    rand = dpreg.datasets.load_randhie()

    def made(call: Callable[..., object]) -> Callable[[], object]:
        return lambda: call(rand.formula, rand.data, eps=1, delta=1e-6, schema=rand.schema)

    return {"dp_ols": made(dpreg.dp_ols), "dp_select": made(dpreg.dp_select)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Count what one call executes.")
    parser.add_argument("--modules", action="store_true", help="list the functions by module")
    asked = parser.parse_args()
    walks = {}
    print(f"{'call':<12}{'modules':>9}{'goal':>6}{'functions':>11}{'goal':>6}{'all':>6}")
    for name, call in calls().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpreg.errors.DpregWarning)
            walks[name] = walk = walked(call)
        found = sum(len(functions(codes)) for codes in walk.values())
        modules, most = GOALS[name]
        whole = sum(map(len, walk.values()))
        print(f"{name:<12}{len(walk):>9}{modules:>6}{found:>11}{most:>6}{whole:>6}")
    for name, walk in walks.items() if asked.modules else ():
        print(f"\n{name}")
        for module in sorted(walk):
            print(f"  {module}: {', '.join(functions(walk[module]))}")


if __name__ == "__main__":
    main()
