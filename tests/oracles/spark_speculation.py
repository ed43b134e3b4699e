"""A Spark cluster of two hosts that runs a copy of a slow task, which overtakes it.

Neither ``local[n]`` nor ``local-cluster`` does: Spark's scheduler starts no copies for a local
master, and never on the host that the first attempt is on. Two addresses of this machine will do.

Run by `tests/sources/test_spark_losses.py` in a process of its own, since a process has one Spark:
``python -m oracles.spark_speculation right FOLDER`` or ``... mutant FOLDER``. Ends with an
AssertionError where a row is counted twice or not at all.
"""

import os
import pickle
import socket
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
from oracles.spark_losses import SETTINGS
from oracles.tallies import COLUMNS, check_halves
from pyspark import TaskContext
from pyspark.sql import SparkSession

import dpreg.sources.spark as spark_module
from dpreg.sources import as_source
from dpreg.sources.base import added
from dpreg.sources.spark import Tallies, row_of, sum_rows

PARTITIONS = 12
SLOW = 3
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.5",
}


@dataclass(frozen=True)
class Slow:
    """Tallies, with their own coins, of which the first attempt at one partition dawdles."""

    columns: object
    tally: object
    counts: object
    folder: Path

    def __call__(self, batches):
        made = list(Tallies(self.columns, self.tally, self.counts)(batches))
        context = TaskContext.get()
        place, attempt = context.partitionId(), context.attemptNumber()
        (self.folder / f"{place}-{attempt}").touch()
        if place == SLOW and not attempt:
            time.sleep(40)
        yield from made


@dataclass(frozen=True)
class CountsCopies:
    """A mutant of `sum_rows`: a partition of which a copy was run is counted with its copy."""

    folder: Path

    def __call__(self, batches):
        for batch in sum_rows(batches):
            vector = pickle.loads(batch.column(1)[0].as_py())
            copied = (self.folder / f"{SLOW}-1").exists()
            yield row_of(added([vector, vector])) if copied else batch


def daemon(role, host, *arguments):
    """Start a master or a worker of a standalone cluster at an address of this machine."""
    home = os.environ["SPARK_HOME"]
    name = f"org.apache.spark.deploy.{role.lower()}.{role}"
    return subprocess.Popen(
        [f"{home}/bin/spark-class", name, "--host", host, "--webui-port", "0", *arguments],
        env={**os.environ, "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def cluster(folder):
    """Run a cluster of two workers, each of one core, and stop it; yield the master's address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    url, running = f"spark://127.0.0.1:{port}", [daemon("Master", "127.0.0.1", "--port", port)]
    try:
        for host in ("127.0.0.2", "127.0.0.3"):
            work = ("-c", "1", "-m", "1g", "-d", str(folder / host), url)
            running.append(daemon("Worker", host, *work))
        yield url
    finally:
        for one in running:
            one.terminate()
        for one in running:
            one.wait(60)


def main(kind, folder):
    warnings.simplefilter("ignore")
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ.update(PYSPARK_PYTHON=sys.executable)
    with cluster(folder) as url:
        builder = SparkSession.builder.master(url).config(map={**SETTINGS, **SPECULATION})
        check(kind, folder, builder.getOrCreate())


def check(kind, folder, session):
    spark_module.Tallies = lambda *given: Slow(*given, folder)
    if kind == "mutant":
        spark_module.sum_rows = CountsCopies(folder)

    def total(frame, tally):
        cells = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
        rows = session.sparkContext.parallelize(cells, PARTITIONS)
        schema = (
            "unused string, x double, whole bigint, gone bigint, truth boolean, text string, "
            "label string, code int"
        )
        return as_source(session.createDataFrame(rows, schema)).total(COLUMNS, tally)

    check_halves(total)
    assert (folder / f"{SLOW}-1").exists(), "no copy was run"


if __name__ == "__main__":
    main(*sys.argv[1:])
