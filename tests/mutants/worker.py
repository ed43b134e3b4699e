"""Runs tests in a copy of the checkout, in forks of one process that has the libraries loaded.

`python worker.py` is started in the copy. Each line that it reads is a JSON list: a file for the
output, and tests. It forks, the child runs pytest on them, and the child's exit code is written.
Loading the libraries and compiling dpreg takes longer than most tests that kill a mutant. What is
loaded beforehand is none of dpreg's own code, so that every child meets the mutant.
"""

import contextlib
import importlib
import json
import os
import sys

LIBRARIES = (
    "flint",
    "numpy",
    "opendp.measurements",
    "pandas",
    "pyarrow.csv",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pytest",
    "scipy.integrate",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.stats",
)


class Ended:
    """Keeps how the tests ended: pytest may raise after that, of a connection left open, say."""

    code = 3

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Keep it; see pytest."""
        self.code = int(exitstatus)


def run(place: str, tests: list[str]) -> int:
    """Run tests in a fork; return pytest's exit code, or minus the signal that ended it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ended = Ended()
    try:
        out = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for stream, number in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (out, 2)):
            os.dup2(stream, number)
        pytest = importlib.import_module("pytest")
        options = ["-q", "-x", "-p", "no:cacheprovider"]
        ended.code = int(pytest.main([*options, *tests], plugins=[ended]))
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(ended.code)


def main() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    assert "dpreg" not in sys.modules
    here = os.getcwd()
    sys.path[:0] = [here, f"{here}/tests"]
    for line in sys.stdin:
        place, *tests = json.loads(line)
        print(run(place, tests), flush=True)


if __name__ == "__main__":
    main()
