import ctypes
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import pytest

from dpreg.errors import ArgumentError
from dpreg.running import restore_interrupts, silenced, threads

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("told", "found"), [("3", 3), ("", 2), (" 1 ", 1)])
def test_threads_are_what_the_user_says_or_may_use(monkeypatch, told, found):
    monkeypatch.setenv("DPREG_THREADS", told)
    monkeypatch.setattr(os, "sched_getaffinity", lambda who: {4, 7})
    assert threads(8) == found
    monkeypatch.setattr(os, "sched_getaffinity", lambda who: {4})
    assert threads(8) == (1 if not told else found)


ROWS_READ = """
import os
import numpy as np
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from dpreg.columns import Unbounded
from dpreg.sources import as_source
calls = []  # one a thread
def tally(chunks):
    calls.append(tally)
    return np.array([sum(len(chunk["x"]) for _, chunk in chunks)])
print(*as_source({"x": np.zeros(1_000_000)}).total({"x": Unbounded()}, tally), len(calls))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity to set")
@pytest.mark.parametrize(("told", "found"), [("", "1"), ("3", "3")])
def test_a_process_on_one_processor_reads_with_one_thread_unless_told(told, found):
    done = subprocess.run(
        [sys.executable, "-c", ROWS_READ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "DPREG_THREADS": told},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1000000", found]


@pytest.mark.parametrize("told", ["0", "-1", "many", "1.5", "9999"])
def test_bad_threads_are_refused(monkeypatch, told):
    monkeypatch.setenv("DPREG_THREADS", told)
    with pytest.raises(ArgumentError, match="DPREG_THREADS"):
        threads(8)


def handler():
    """The address of the handler in force, which Python does not tell."""
    found = ctypes.create_string_buffer(256)
    ctypes.CDLL(None).sigaction(signal.SIGINT, None, found)
    return found.raw[:8]


@pytest.mark.skipif(sys.platform != "linux", reason="looks at Linux's sigaction")
def test_the_handler_is_put_back_and_a_users_own_is_kept():
    restore_interrupts()  # other tests import Polars
    python = handler()
    taken = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: None)
    ctypes.CDLL(None).signal(signal.SIGINT, taken)
    assert handler() != python
    other = threading.Thread(target=restore_interrupts)
    other.start()
    other.join()
    assert handler() != python  # only the main thread may
    restore_interrupts()
    assert handler() == python
    before = signal.signal(signal.SIGINT, mine := lambda *_: None)
    restore_interrupts()
    assert signal.getsignal(signal.SIGINT) is mine
    signal.signal(signal.SIGINT, before)


PHASES = {
    "reading": """
        def rows():
            import polars  # takes Ctrl-C for itself
            for chunk in range(100_000):
                if chunk == 3:
                    print("go", flush=True)
                yield polars.DataFrame({"x": np.zeros(2_000_000)})
        dpreg.dp_mean("x", rows, bounds=(0, 1), eps=1)
    """,
    "polars": """
        import polars
        frame = polars.DataFrame({"x": np.zeros(40_000_000)})
        dpreg.dp_mean("x", frame.head(9), bounds=(0, 1), eps=1)
        print("go", flush=True)
        while True:
            dpreg.dp_mean("x", frame, bounds=(0, 1), eps=1)
    """,
    "tree": """
        import polars, pandas
        rng = np.random.default_rng(0)
        names = [f"x{j}" for j in range(40)]
        frame = pandas.DataFrame(rng.uniform(-1, 1, (5000, 40)), columns=names)
        frame["y"] = frame[names[:5]].sum(axis=1) / 5
        def choose(names):
            dpreg.dp_select("y ~ " + " + ".join(names), frame, 1, fit=None, engine="tree",
                            schema=dict.fromkeys([*names, "y"], (-1, 1)))
        choose(names[:3])
        print("go", flush=True)
        while True:
            choose(names)
    """,
}


def heed():
    """Let a child heed Ctrl-C, which the jobs of nohup, and all that they start, ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def seconds_to_end(program, threads="2"):
    """Send a program Ctrl-C one second after it says "go"; return how long it takes to end.

    Polars takes Ctrl-C for itself when it is imported, and dpreg takes it back where it begins to
    read; "go" is said after that. A try whose Ctrl-C is lost, or ends as another error, never ends.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT), "DPREG_THREADS": threads},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed,
    )
    assert process.stdout.readline() == "go\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    try:
        _, told = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return math.inf
    took = time.monotonic() - start
    # Inside the lookup of an OrderedDict, as patsy has, Python makes a KeyError of it.
    return took if "KeyboardInterrupt" in told else math.inf


def test_ctrl_c_ends_a_pass_of_one_thread_that_imports_polars():
    program = "import numpy as np, dpreg\n" + textwrap.dedent(PHASES["reading"])
    assert any(seconds_to_end(program, "1") < 2 for _ in range(3))


@pytest.mark.parametrize("phase", list(PHASES))
def test_ctrl_c_ends_a_call_within_two_seconds(phase):
    program = "import numpy as np, dpreg\n" + textwrap.dedent(PHASES[phase])
    # A busy machine may be slow once; where the handler is another's, each try takes 30 s.
    assert any(seconds_to_end(program) < 2 for _ in range(3))


def test_two_threads_that_are_silent_at_once_stay_so_and_leave_the_filters_alone(recwarn):
    """The first leaves while the second is inside, and warns only then."""
    before = list(warnings.filters)
    inside, left = threading.Event(), threading.Event()

    def late():
        assert inside.wait(9)
        with silenced():
            second.set()
            assert left.wait(9)
            warnings.warn("the block holds 99", stacklevel=1)

    second = threading.Event()
    thread = threading.Thread(target=late)
    thread.start()
    with silenced():
        inside.set()
        assert second.wait(9)
    left.set()
    thread.join()
    assert not recwarn.list
    assert list(warnings.filters) == before
    with pytest.warns(UserWarning, match="heard"):
        warnings.warn("heard again", stacklevel=1)


def test_silence_stands_again_whatever_was_done_to_it_inside(recwarn):
    before = list(warnings.filters)
    with silenced():
        warnings.simplefilter("always")
        with silenced():
            warnings.warn("unheard", stacklevel=1)
    assert not recwarn.list
    assert list(warnings.filters) == before


FORKED = """
import multiprocessing, os, sys, threading
from dpreg import running
held, done = threading.Event(), threading.Event()
def hold():
    with running._SILENCE.lock:
        held.set()
        done.wait(0.5)
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if not child:
    with running.silenced():
        os._exit(0)
done.set()
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_child_that_is_forked_while_a_thread_falls_silent_can_do_so_too():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.split() == ["0"]
