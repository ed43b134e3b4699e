"""Ctrl-C while a cluster reads: the call ends within two seconds, and its jobs with it."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpreg.sources.cluster import shielded

ROOT = Path(__file__).parents[2]
CELL = "a cell of a row"
pytestmark = [
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals"),
]

ENGINES = {
    "dask": """
        import dask.dataframe as dd
        frame = dd.from_pandas(pd.DataFrame({"x": np.zeros(2_000_000)}), npartitions=4)
        data, waiting = dd.concat([frame] * 100), lambda: False
    """,
    "distributed": """
        import distributed, dask.dataframe as dd
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None,
            silence_logs=60,
        )
        client = distributed.Client(cluster)
        frame = dd.from_pandas(pd.DataFrame({"x": np.zeros(1_000_000)}), npartitions=4)
        data, waiting = dd.concat([frame] * 100), lambda: any(client.who_has().values())
    """,
    "pyspark": """
        from pyspark.sql import SparkSession
        settings = {
            "spark.ui.enabled": "false", "spark.log.level": "OFF",
            "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
        }
        session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        data = session.range(0, 2_000_000_000, 1, 64).selectExpr("id % 2 as x")
        waiting = lambda: session.sparkContext.statusTracker().getActiveJobsIds()
    """,
}
AROUND = """
    import threading, time
    import numpy as np, pandas as pd, dpreg

    def main():
{engine}
        def say():
            time.sleep(3)
            print("reading", flush=True)

        try:
            threading.Thread(target=say).start()
            while True:
                dpreg.dp_mean("x", data, bounds=(0, 1), eps=1)
        except KeyboardInterrupt:
            print("stopped", flush=True)
        until = time.monotonic() + 30
        while waiting() and time.monotonic() < until:
            time.sleep(0.1)
        print("left" if waiting() else "idle", flush=True)

    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_ends_a_call_on_a_cluster(engine, tmp_path):
    pytest.importorskip(engine)
    # A busy machine may be slow once.
    assert any(seconds_to_stop(engine, tmp_path) < 2 for _ in range(3))


def seconds_to_stop(engine, tmp_path):
    """Interrupt a program that reads on a cluster; return how long its call goes on."""
    body = textwrap.indent(textwrap.dedent(ENGINES[engine]), " " * 8)
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(AROUND.format(engine=body)))
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", program],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # nohup ignores it
    )
    try:
        assert process.stdout.readline() == "reading\n"
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        assert process.stdout.readline() == "stopped\n"
        seconds = time.monotonic() - start
        assert process.stdout.readline() == "idle\n"
        process.wait(timeout=300)  # the cluster of this process shuts down
    finally:
        process.kill()
        process.communicate()
    return seconds


@pytest.mark.parametrize("fails", ["nothing", "the engine", "cancel", "remove"])
def test_an_interrupt_is_one_whatever_the_engine_says_next(fails):
    """PySpark talks to its JVM while an interrupt is on its way, and may fail there."""
    spark = pytest.importorskip("dpreg.sources.spark")
    asked = []

    def ask(what):
        def asking(tag):
            asked.append(what)
            if what == fails:
                raise RuntimeError(f"the connection was broken off at {CELL}")

        return asking

    context = SimpleNamespace(
        addJobTag=ask("add"), cancelJobsWithTag=ask("cancel"), removeJobTag=ask("remove")
    )
    session = SimpleNamespace(sparkContext=context, addTag=0, interruptTag=0, removeTag=0)
    frame = SimpleNamespace(sparkSession=session)

    def stopped():
        with spark._cancelled(frame):
            try:
                raise KeyboardInterrupt
            finally:
                if fails == "the engine":
                    raise RuntimeError(f"the connection was broken off at {CELL}")

    def failed():
        with spark._cancelled(frame):
            raise ValueError("a job failed")

    with pytest.raises(KeyboardInterrupt) as told:
        shielded("Spark", stopped)
    if fails != "nothing":
        assert told.value.__context__ is None  # which would hold what the engine said
    assert asked == ["add", "cancel", "remove"]
    asked.clear()
    if fails != "remove":
        with pytest.raises(ValueError, match="a job failed"):
            failed()
        assert asked == ["add", "remove"]
