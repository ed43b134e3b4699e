"""Ledgers of every kind, the server of one of them included."""

import itertools
import os
import tempfile
from pathlib import Path

import pytest
from oracles import postgres_server

from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    if not postgres_server.BIN:
        pytest.skip("Debian's package postgresql is not installed")
    # In memory where there is such a folder: a restart syncs the whole base.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path_factory.getbasetemp()
    with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as folder:
        running = postgres_server.Server(Path(folder))
        yield running
        running.stop()


@pytest.fixture
def base(request):
    """The address of a new database."""
    server = request.getfixturevalue("server")
    name = f"ledger{next(_numbers)}"
    server.sql(f"CREATE DATABASE {name}")
    return server.url(name)


@pytest.fixture(params=["file", "postgres"])
def place(request, tmp_path):
    """Where a ledger that lasts can be made."""
    return tmp_path / "ledger.db" if request.param == "file" else request.getfixturevalue("base")


@pytest.fixture(params=["memory", "file", "postgres"])
def ledger(request, tmp_path):
    places = {"memory": lambda: None, "file": lambda: tmp_path / "ledger.db"}
    find = places.get(request.param, lambda: request.getfixturevalue("base"))
    return Ledger(Budget(5, "1e-6"), find())
