"""Mutants: one-line changes of dpreg that break a promise, each of which the tests must notice.

`catalogue/*.toml` lists them by room. A mutant names a file, a text that stands in it exactly once,
what it becomes, the promise that this breaks, and the tests nearest to it. It is applied to a copy
of the checkout, never to the checkout itself, and the tests run there: a failing test *kills* it.

mutmut and cosmic-ray were looked at first. Both make mutants from general rules (swap an operator,
change a constant) by the thousand and run one test command on each; neither takes a kept list with
a promise and tests of its own for each mutant, which is the point here.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from compileall import compile_dir
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from py_compile import PycInvalidationMode
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]
FOLDERS = ("dpreg", "tests", "benchmarks")
FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "docs/recording.md")
TIMEOUT = 900


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: `old`, which stands once in `file`, becomes `new` and so breaks a promise."""

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    daily: bool = False

    def applied(self, text: str) -> str:
        """Return the file's text with the change made."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name}: {self.file} holds the text {found} times, not once")
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the tests said: "killed", "survived", "hung", or "invalid" if they could not run."""

    outcome: str
    seconds: float
    output: str


@cache
def catalogue() -> tuple[Mutant, ...]:
    """Read all mutants, in the order of the files."""
    mutants: list[Mutant] = []
    for path in sorted((Path(__file__).parent / "catalogue").glob("*.toml")):
        for name, fields in tomllib.loads(path.read_text()).items():
            tests = tuple(fields.pop("tests"))
            mutants.append(Mutant(name=name, tests=tests, **fields))
    return tuple(mutants)


class Copy:
    """A copy of the checkout in a temporary folder, to be changed and thrown away.

    With `compiled` its modules are compiled beforehand, which pays where many mutants are judged:
    only what a mutant changes is then compiled again (the bytecode knows its source by a hash).
    """

    def __init__(self, *, compiled: bool = False) -> None:
        self.compiled = compiled
        self.worker: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Copy what the tests need."""
        self.folder = Path(tempfile.mkdtemp(prefix="dpreg-mutant-"))
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
        for name in FOLDERS:
            shutil.copytree(ROOT / name, self.folder / name, ignore=ignored)
        (self.folder / "docs").mkdir()
        for name in FILES:
            shutil.copy(ROOT / name, self.folder / name)
        if self.compiled:
            mode = PycInvalidationMode.CHECKED_HASH
            compile_dir(self.folder / "dpreg", quiet=2, invalidation_mode=mode)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove the copy."""
        self._end()
        shutil.rmtree(self.folder)

    def judge(self, mutant: Mutant) -> Verdict:
        """Apply a mutant, run its tests, and take it back."""
        path = self.folder / mutant.file
        text = path.read_text()
        path.write_text(mutant.applied(text))
        try:
            return self.run(mutant.tests)
        finally:
            path.write_text(text)

    def run(self, tests: tuple[str, ...]) -> Verdict:
        """Run some tests in the copy; pytest's exit code 1 says that one failed."""
        self.worker = worker = self.worker or self._start()
        start, place = time.monotonic(), self.folder / "output"
        assert worker.stdin is not None
        assert worker.stdout is not None
        print(json.dumps([str(place), *tests]), file=worker.stdin, flush=True)
        ended = select.select([worker.stdout], [], [], TIMEOUT)[0]
        if not ended:
            self._end()
            return Verdict("hung", time.monotonic() - start, f"no end after {TIMEOUT} s")
        code = worker.stdout.readline().strip()
        output = place.read_text()[-3000:] if place.exists() else ""
        if not code:
            self._end()
        outcome = {"0": "survived", "1": "killed"}.get(code, "invalid")
        return Verdict(outcome, time.monotonic() - start, output)

    def _start(self) -> subprocess.Popen[str]:
        environment = os.environ | {
            "PYTHONPATH": f"{self.folder}{os.pathsep}{self.folder / 'tests'}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        environment.pop("PYTEST_ADDOPTS", None)
        return subprocess.Popen(
            [sys.executable, str(self.folder / "tests" / "mutants" / "worker.py")],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _end(self) -> None:
        """End the worker, and a test that is still under way."""
        if self.worker is not None:
            os.killpg(self.worker.pid, signal.SIGKILL)
            self.worker.communicate()
            self.worker = None
