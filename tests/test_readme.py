"""The README is true: its Python runs as pasted, in order, in one session."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.usefixtures("data_folder")
def test_the_readme_runs_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        exec(block, session)
    assert session["result"].n_models == 512


def test_the_first_screen_shows_call_result_and_commands() -> None:
    text = README.read_text(encoding="utf-8")
    call, printed = text.index("dp_select("), text.index("Private variable selection")
    assert call < printed < text.index("make demo") < text.index("make test")
