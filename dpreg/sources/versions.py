"""Do a cluster's workers have the dpreg of this process? Asked before anything is charged.

Another version may send vectors of another shape or meaning, and the pass fails when the ledger has
been charged. Versions are public. Workers that join later are not asked.

Tested in `tests/sources/test_dask.py` and `tests/sources/test_spark.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Any, Final
from weakref import WeakSet

from dpreg.errors import DataError
from dpreg.sources.cluster import shielded

__all__ = ["check_dask", "check_spark"]

_OURS: Final = metadata.version("dpreg")
_asked: WeakSet[Any] = WeakSet()  # sessions of Spark: there it is a job


def check_dask(engine: str) -> None:
    """Ask the workers of the distributed cluster that would compute, if there is one."""
    if "distributed" not in sys.modules:
        return
    from dask.base import get_scheduler
    from distributed import Client

    client = getattr(get_scheduler(), "__self__", None)  # type: ignore[no-untyped-call]
    if isinstance(client, Client) and not client.asynchronous:
        _check(engine, shielded(engine, lambda: client.run(_version()).values()))


def check_spark(engine: str, session: Any) -> None:
    """Ask the Pythons of a session's executors, once for each session; not by Spark Connect."""
    remote = type(session).__module__.startswith("pyspark.sql.connect")
    if not remote and session not in _asked:
        _check(engine, shielded(engine, lambda: _of_executors(session.sparkContext)))
        _asked.add(session)


def _of_executors(context: Any) -> list[str]:
    tasks, version = context.defaultParallelism, _version()
    found: list[str] = context.parallelize(range(tasks), tasks).map(lambda _: version()).collect()
    return found


def _version() -> Callable[[], str]:
    """Return a function that tells what a Python has; it is sent whole, for it may have nothing."""

    def version() -> str:
        from importlib import metadata

        try:
            return metadata.version("dpreg")
        except metadata.PackageNotFoundError:
            return ""

    return version


def _check(engine: str, found: Iterable[str]) -> None:
    others = sorted(set(found) - {_OURS})
    if others:
        told = " and ".join(f"dpreg {other}" if other else "no dpreg" for other in others)
        raise DataError(
            f"this process has dpreg {_OURS}, and workers of {engine} have {told}: install the "
            "same version for all of them"
        )
