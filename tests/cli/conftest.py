"""The command as a user runs it: another process, on a table that looks like King County's."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpreg.cli import main

ROOT = Path(__file__).parents[2]
SENTINEL = "731846.25"
"""A value that only rows hold: it must be in no output."""


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    """A folder with a table, a schema, a ledger and a damaged table."""
    folder = tmp_path_factory.mktemp("desk")
    rng = np.random.default_rng(3)
    rows = 4000
    sqft = rng.uniform(300, 8000, rows)
    frame = pd.DataFrame(
        {
            "price": np.clip(150 * sqft + rng.normal(0, 5e4, rows), 0, 2e6),
            "sqft": sqft,
            "lat": rng.uniform(47.1, 47.8, rows),
        }
    )
    frame.loc[7, "price"] = float(SENTINEL)
    frame.to_parquet(folder / "houses.parquet")
    (folder / "broken.parquet").write_bytes(b"PAR1 " + SENTINEL.encode())
    (folder / "folder.parquet").mkdir()
    os.mkfifo(folder / "pipe.parquet")
    schema = {"columns": {"price": [0, 2e6], "sqft": [300, 8000], "lat": [47.1, 47.8]}}
    (folder / "schema.json").write_text(json.dumps(schema))
    return folder


def _checked(code, found, out, told):
    assert found == code, told + out
    assert SENTINEL not in out + told
    assert "Traceback" not in told
    return out, told


@pytest.fixture
def shell(desk):
    """Run the command as another process; return its output and what it told on stderr."""

    def command(*arguments, code=0, folder=desk, **more):
        done = subprocess.run(
            [sys.executable, "-m", "dpreg.cli", *map(str, arguments)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **more},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return _checked(code, done.returncode, done.stdout, done.stderr)

    return command


@pytest.fixture
def run(desk, capsys, monkeypatch):
    """Run the command in this process: the same, without the seconds that imports take."""

    def command(*arguments, code=0, folder=desk):
        with monkeypatch.context() as patch, warnings.catch_warnings():
            patch.chdir(folder)
            patch.setattr(sys, "argv", ["dpreg", *map(str, arguments)])
            capsys.readouterr()
            with pytest.raises(SystemExit) as ended:
                main()
            return _checked(code, ended.value.code, *capsys.readouterr())

    return command
