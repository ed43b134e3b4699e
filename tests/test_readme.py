"""The README is true: its Python and its commands run as pasted, in order, in one session."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


@pytest.mark.usefixtures("data_folder")
def test_the_readme_runs_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session: dict[str, object] = {}
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        exec(block, session)
    assert session["result"].n_models == 512
    shell = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    commands = re.findall(r"^dpreg (.*)$", shell, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        subprocess.run(
            [sys.executable, "-m", "dpreg.cli", *shlex.split(command)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=True,
        )
    assert "lpi" in Path("lpi.html").read_text(encoding="utf-8")


def test_the_first_screen_shows_call_result_and_commands() -> None:
    text = README.read_text(encoding="utf-8")
    call, printed = text.index("dp_select("), text.index("Private variable selection")
    assert call < printed < text.index("make demo") < text.index("make test")
