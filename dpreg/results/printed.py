"""What has a printable page: text where it is printed, HTML in a notebook.

Tested in `tests/results/test_summary.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpreg.results.summary import Summary

__all__ = ["Printed"]


class Printed:
    """The part that results, plans and studies share: they are read as their `summary`."""

    __slots__ = ()

    def summary(self) -> Summary:
        """Return the printable page."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()
