"""The pictures of a report, as SVG inside the page; matplotlib is an extra.

Tested in `tests/reporting/test_page.py`.
"""

from __future__ import annotations

import html
import io
import re
from typing import Any, Final

from dpreg.results.base import Released
from dpreg.results.histogram import HistogramResults
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import SelectionResults

__all__ = ["figures"]

_WITHOUT: Final = (
    "<p>The plots are left out: they need matplotlib (<code>pip install dpreg[plot]</code>).</p>"
)


def figures(result: Released) -> str:
    """Return the plots that suit a result; a line that says why where there are none."""
    try:
        import matplotlib as mpl
    except ImportError:
        return _WITHOUT
    del mpl
    drawn = []
    if isinstance(result, SelectionResults):
        caption = "Filled dots: selected. A share of the released draws, not of the data."
        if result.by_looks:
            caption = "Filled dots: selected. Grey ones: one of several that could stand there."
        drawn.append(_figure(result, caption, kind="frequencies"))
        if result.regression is not None:
            drawn.append(_coefficients(result.regression))
    elif isinstance(result, RegressionResults):
        drawn.append(_coefficients(result))
    elif isinstance(result, HistogramResults):
        drawn.append(_figure(result, "Lines: 95% intervals, noise and sampling together."))
    return "\n".join(drawn)


def _coefficients(result: RegressionResults) -> str:
    caption = "Coefficients with 95% intervals, which include the privacy noise."
    return _figure(result, caption)


def _figure(result: Any, caption: str, **how: Any) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Text stays text, and no date or version of a machine gets into the file.
    with mpl.rc_context(
        {"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "dpreg"}
    ):
        from matplotlib import pyplot

        axes = result.plot(**how)
        figure = axes.figure
        assert isinstance(figure, Figure)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return (
        f'<figure role="img" aria-label="{html.escape(caption)}">{svg}'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )
