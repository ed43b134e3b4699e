"""Release reports: one HTML file about one result, for its signatory and its readers."""

from dpreg.reporting.page import report_html, write_report

__all__ = ["report_html", "write_report"]
