"""One Dask cluster and one Spark session for all tests of a process that ask for them.

Both take seconds to start: such tests carry ``pytest.mark.xdist_group("cluster")``, so that with
``--dist loadgroup`` one process runs them all.
"""

import logging
import sys
import warnings
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def dask_client():
    """Return the client of a local cluster: two workers, processes of one thread each."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def spark():
    """Return a session of Spark in this machine: two threads, four attempts at a task."""
    sql = pytest.importorskip("pyspark.sql")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        # Executors import the oracles.
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
        "spark.python.daemon.module": "oracles.spark_daemon",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = sql.SparkSession.builder.master("local[2,4]").config(map=settings)
        # Else tests of this process that listen to all logs hear of garbage being collected.
        logging.getLogger("py4j").setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PySpark's own, of how old pandas and sockets are
            session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def no_rows_leave(monkeypatch):
    """Only integers may be fetched: a packed vector, or the rows of each partition."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    integers = ({"slot", "vector"}, {"slot", "rows"})
    collect = ClassicFrame.collect

    def guarded(self):
        assert set(self.columns) in integers, "rows were asked for"
        rows = collect(self)
        assert set(self.columns) != integers[0] or len(rows) <= 1, "vectors were left unadded"
        return rows

    def refuse(self, *args, **kwargs):
        raise AssertionError("rows were asked for")

    monkeypatch.setattr(ClassicFrame, "collect", guarded)
    for name in ("toPandas", "toArrow", "toLocalIterator", "take", "head", "first", "tail"):
        monkeypatch.setattr(ClassicFrame, name, refuse)
