"""Accounts that R and Python share: a file, and a PostgreSQL database."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from oracles import postgres_server

from dpreg import Budget, Ledger

CHARGES = """
library(dpreg)
schema <- list(mpg = c(5, 40), wt = c(1, 6))
ledger <- dp_ledger(place, eps = 2, analyst_cap = list(ada = 1, bob = 0.3), period_cap = 1)
fit <- dp_ols(mpg ~ wt, mtcars, eps = 0.2, schema = schema, budget = ledger, analyst = "ada")
asks <- dp_ledger(place, analyst = "bob")
mean <- dp_mean("mpg", mtcars, eps = 0.2, schema = schema, budget = asks)
refused <- tryCatch(dp_mean("mpg", mtcars, eps = 0.2, schema = schema, budget = asks),
                    dpreg_budget_error = function(cond) "refused")
shown <- c(deparse(unclass(ledger)), capture.output(print(ledger)), deparse(fit$call))
cat(refused, fit$record$ledger$head, verify_ledger(ledger)$entries, any(grepl("secret", shown)))
"""


@pytest.fixture(params=["file", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A file, or the address of an empty database, with a password that the server does not ask."""
    if request.param == "file":
        yield str(tmp_path / "ledger.db")
        return
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    if not postgres_server.BIN:
        pytest.skip("Debian's package postgresql is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        running = postgres_server.Server(Path(folder))
        running.sql("CREATE DATABASE r")
        yield running.url("r").replace("@", ":secret@", 1)
        running.stop()


def test_r_charges_what_python_sees(rscript, place: str) -> None:
    told = rscript(f'place <- "{place}"\n' + CHARGES).split()
    ledger = Ledger.open(place)
    assert told == ["refused", ledger.entries[0].head, "2", "FALSE"]
    assert ledger.spent == Budget("0.4")
    assert [entry.analyst for entry in ledger.entries] == ["ada", "bob"]
    assert ledger.caps.period == Budget(1)
    with pytest.raises(Exception, match="bob"):
        ledger.charge(Budget("0.2"), "more", analyst="bob")
    ledger.close()
