"""Processes for tests, which neither hang for what earlier tests left behind, nor in silence.

`CLEAN` starts them from a process without threads, which has seen no test. Their work must be a
function of a module. `FORK` forks the test's own, with whatever the test patched: a fork has all
objects of its parent and one of its threads. Collecting what earlier tests left behind may wait
for a thread that is not there, so a fork collects only what is its own. If it still hangs, it says
where and ends.
"""

import faulthandler
import gc
import multiprocessing
import queue
import time
from multiprocessing.context import ForkContext, ForkProcess
from pathlib import Path

import pytest

HANGS = 100


class _Process(ForkProcess):
    def run(self):
        gc.freeze()
        faulthandler.dump_traceback_later(HANGS, exit=True, file=2)
        super().run()


class _Context(ForkContext):
    Process = _Process


FORK = _Context()
CLEAN = multiprocessing.get_context("forkserver")
CLEAN.set_forkserver_preload(["dpreg.privacy.ledger"])  # else each imports it anew


def answers(results, processes, count=None, timeout=HANGS + 50):
    """Take an answer of each process, or as many as are told where some are to be killed."""
    found, deadline = [], time.monotonic() + timeout
    while len(found) < (len(processes) if count is None else count):
        try:
            found.append(results.get(timeout=1))
        except queue.Empty:
            codes = [process.exitcode for process in processes]
            if time.monotonic() > deadline or (count is None and any(codes)):
                waits = [_waits(process.pid) for process in processes]
                pytest.fail(f"{len(found)} answers; exit codes {codes}; waits {waits}")
    return found


def _waits(process):
    """Say what the system knows of where a process waits; nothing where it has ended."""
    try:
        return Path(f"/proc/{process}/syscall").read_text().strip()
    except OSError:
        return ""
