"""The README is true: its Python runs as pasted, in order, in one session; and it is short."""

import re
from pathlib import Path

import pytest

import dpreg

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def test_the_readme_runs_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session: dict[str, object] = {}
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        exec(block, session)
    assert session["result"].n_models == 512
    assert dpreg.load("fit.json").method == "adaptive"
    assert str(session["ledger"].spent.eps) == "1"


def test_the_readme_is_read_in_minutes() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= 1_000


def test_the_first_screen_shows_call_result_and_commands() -> None:
    text = README.read_text(encoding="utf-8")
    call, printed = text.index("dp_select("), text.index("Private variable selection")
    assert call < printed < text.index("make demo") < text.index("make test")
