"""Whatever names the version names the same one, and the changelog has its date."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def found(name: str, pattern: str) -> str:
    match = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert match, name
    return match[1]


def test_all_files_name_one_version() -> None:
    assert found("CITATION.cff", r"^version: (\S+)$") == VERSION
    assert found("r_bridge/dpreg/DESCRIPTION", r"^Version: (\S+)$") == VERSION
    assert found("r_bridge/dpreg/NEWS.md", r"^# dpreg (\S+)$") == VERSION


def test_the_changelog_dates_the_version() -> None:
    dated = found("CHANGELOG.md", rf"^## {re.escape(VERSION)} - (\S+)$")
    assert found("CITATION.cff", r"^date-released: (\S+)$") == dated
