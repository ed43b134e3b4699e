"""The examples run as they are, and the notebook is kept without outputs."""

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "examples"
NOTEBOOK = FOLDER / "first_hour.ipynb"


def cells() -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return found


def run(script: Path, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "agg", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    code = [
        "".join(cell["source"])  # type: ignore[arg-type]
        for cell in cells()
        if cell["cell_type"] == "code"
    ]
    assert len(code) >= 8
    script = tmp_path / "first_hour.py"
    script.write_text("\n".join(code), encoding="utf-8")
    assert "spent of eps=20" in run(script, tmp_path)


def test_the_notebook_holds_no_output() -> None:
    for cell in cells():
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


def test_the_demo_prints_a_summary(tmp_path: Path) -> None:
    printed = run(FOLDER / "demo.py", tmp_path)
    assert "Private variable selection: mdvis" in printed
    assert "NOT PRIVATE" not in printed
