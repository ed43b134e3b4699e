"""The audits' table: what was tried and how near it came to the claim, printed after the run."""

from collections.abc import Callable
from pathlib import Path

import pytest

Record = Callable[..., None]
_LINES: list[tuple[str, ...]] = []
_HEAD = ("audit", "mechanism", "neighbours", "k", "tried", "worst / claimed")


@pytest.fixture
def record() -> Record:
    """Add a line to the table of audits."""

    def add(audit: str, mechanism: str, relation: str, k: int, tried: int, worst: float) -> None:
        _LINES.append((audit, mechanism, relation, str(k), f"{tried:,}", f"{worst:.6f}"))

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _LINES:
        return
    widths = [max(map(len, column)) for column in zip(_HEAD, *_LINES, strict=True)]
    rows = [_HEAD, tuple("-" * width for width in widths), *sorted(_LINES)]
    text = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in rows
    ]
    terminalreporter.section("privacy audits")
    terminalreporter.write_line("\n".join(text))
    folder = Path("audit-out")
    folder.mkdir(exist_ok=True)
    (folder / "audit.md").write_text("\n".join(text) + "\n", encoding="utf-8")
