"""One Dask cluster and one Spark session for all tests of a process that ask for them.

Both take seconds to start: such tests carry ``pytest.mark.xdist_group("cluster")``, so that with
``--dist loadgroup`` one process runs them all.
"""

import logging

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
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
