"""A Spark cluster of two executors, one of which is killed while vectors are being added.

Run by `tests/sources/test_spark_losses.py` in a process of its own, since a process has one Spark:
``python -m oracles.spark_losses right FLAG`` or ``... mutant FLAG``. Ends with an AssertionError
where a row is counted twice or not at all.
"""

import itertools
import os
import signal
import sys
import time
import warnings
import zlib
from pathlib import Path

import pyarrow as pa
import pyspark
from oracles.tallies import COLUMNS, check_halves, claim
from pyspark import TaskContext
from pyspark.sql import SparkSession

import dpreg.sources.spark as spark_module
from dpreg.sources import as_source
from dpreg.sources.spark import Tallies, sum_rows

PARTITIONS, WIDTH = 24, 8
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
    "spark.log.level": "OFF",
    "spark.python.daemon.module": "oracles.spark_daemon",
    "spark.sql.artifact.isolation.enabled": "false",
    # Spark before 4.1 does not see that attempts differ; neither does this one then.
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class KillingSum:
    """Adds rows, and kills its executor once, when other tasks of the stage have added theirs."""

    def __init__(self, flag):
        self.flag = flag

    def __call__(self, batches):
        first = next(batches, None)
        if TaskContext.get().partitionId() == WIDTH - 1 and claim(self.flag):
            os.kill(executor(), signal.SIGKILL)
            time.sleep(60)
        yield from sum_rows(itertools.chain([] if first is None else [first], batches))


class DealtByContent:
    """A mutant of `Tallies`: which task adds a vector follows from what it holds."""

    def __init__(self, columns, tally, counts):
        self.tallies = Tallies(columns, tally, counts)

    def __call__(self, batches):
        for row in self.tallies(batches):
            slot = pa.array([zlib.crc32(row.column(2)[0].as_py()) >> 1], pa.int32())
            yield row.set_column(0, "slot", slot)


def executor():
    """Return the Java process that forked the process that forked this one."""
    status = Path(f"/proc/{os.getppid()}/stat").read_text()
    return int(status.rpartition(")")[2].split()[1])


def main(kind, flag):
    warnings.simplefilter("ignore")
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=SETTINGS)
    session = builder.getOrCreate()
    spark_module._widths = lambda tally: (WIDTH, 1)
    spark_module.sum_rows = KillingSum(Path(flag))
    if kind == "mutant":
        spark_module.Tallies = DealtByContent
    stages = []

    def total(frame, tally):
        cells = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
        rows = session.sparkContext.parallelize(cells, PARTITIONS)
        schema = (
            "unused string, x double, whole bigint, gone bigint, truth boolean, text string, "
            "label string, code int"
        )
        source = as_source(session.createDataFrame(rows, schema))
        vector = source.total(COLUMNS, tally)
        known = map(session.sparkContext.statusTracker().getStageInfo, range(99))
        stages.extend(stage.currentAttemptId for stage in known if stage)
        return vector

    check_halves(total)
    assert Path(flag).exists(), "no executor was killed"
    assert max(stages) > 0, "no stage was run again"


if __name__ == "__main__":
    main(*sys.argv[1:])
