"""Release reports: one HTML file about one result, for who signs it and who reads it."""

from dpreg.reporting.page import report_html, write_report

__all__ = ["report_html", "write_report"]
