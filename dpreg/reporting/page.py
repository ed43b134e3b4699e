"""The page of a release report: sections in order, one file, nothing fetched from a network."""

from __future__ import annotations

import html
import os
from importlib import resources

from dpreg.errors import ArgumentError
from dpreg.paths import write_text
from dpreg.reporting import sections
from dpreg.reporting.noise import noise
from dpreg.results.base import Released
from dpreg.sources.files import check_not_data

__all__ = ["report_html", "write_report"]

# A page that may load nothing: what it shows is what is in it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_report(result: Released, path: str | os.PathLike[str]) -> None:
    """Write a release report: one HTML file, which needs no network and prints well.

    It says what was asked, what privacy is claimed, in words and in numbers, where the release
    stands in its ledger, what was found, how large the privacy noise is beside the sampling error,
    what was assumed, and how to verify all this.

    Parameters
    ----------
    result : a result of any of dpreg's calls
    path : path-like
        Written whole or not at all.

    Raises
    ------
    ArgumentError
        If `result` is not a released result, or `path` ends like a table's file.
    DataError
        If the file cannot be written.
    """
    check_not_data(path)
    write_text(path, report_html(result))


def report_html(result: Released) -> str:
    """Return the report as the text of an HTML file."""
    if not isinstance(result, Released):
        raise ArgumentError(f"a report is made from a result; got {type(result).__name__}.")
    title = sections.title(result)
    body = "\n".join(
        f"<section>\n{section}\n</section>"
        for section in (
            sections.head(result),
            sections.asked(result),
            sections.privacy(result),
            sections.ledger(result),
            sections.findings(result),
            noise(result),
            sections.assumed(result),
            sections.verification(result),
        )
        if section
    )
    style = resources.files("dpreg.reporting").joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )
