"""The section that sets the privacy noise beside the sampling error.

Tested in `tests/reporting/test_page.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from dpreg.reporting.markup import number, section, text
from dpreg.results.base import Released
from dpreg.results.classic import Estimates
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import SelectionResults

__all__ = ["noise"]

_MOST_LINES: Final = 60


def noise(result: Released) -> str:
    """Set the privacy noise beside the sampling error."""
    parts = _errors(result)
    if not parts:
        return ""
    lines = []
    for name, value, sampling, private in parts[:_MOST_LINES]:
        total = float(np.hypot(sampling, private))
        share = private**2 / total**2 if total > 0 and np.isfinite(total) else 0.0
        bar = (
            f'<div class="bar"><i class="sampling" style="width: {100 * (1 - share):.1f}%"></i>'
            f'<i class="noise" style="width: {100 * share:.1f}%"></i></div>'
        )
        numbers = "".join(
            f'<td class="number">{number(x)}</td>' for x in (value, sampling, private, total)
        )
        lines.append(
            f"<tr><td>{text(name)}</td>{numbers}<td>{bar}</td>"
            f'<td class="number">{100 * share:.0f}%</td></tr>'
        )
    heads = ("estimate", "se, sampling", "se, noise", "se, both")
    body = (
        '<p>The variance of each estimate has two parts:</p><p class="key"><span><i '
        'class="sampling"></i>sampling, as without privacy</span>'
        '<span><i class="noise"></i>privacy noise</span></p><table><tr><th></th>'
        + "".join(f'<th class="number">{name}</th>' for name in heads)
        + '<th>shares of the variance</th><th class="number">noise</th></tr>'
        + "".join(lines)
        + "</table>"
    )
    body += _of_choice(result)
    if len(parts) > _MOST_LINES:
        body += f"<p>And {len(parts) - _MOST_LINES} more estimates.</p>"
    return section("Noise beside sampling error", body)


def _of_choice(result: Released) -> str:
    """Say what coefficients are that come from the look that chose."""
    fit = result.regression if isinstance(result, SelectionResults) else result
    if isinstance(fit, RegressionResults) and fit.among:
        return "<p>Estimates are those beside all candidates, chosen or not.</p>"
    if isinstance(fit, RegressionResults) and fit.conditional:
        return (
            "<p>Estimates are those given the choice of the model; standard errors are as if its "
            "terms had been given beforehand.</p>"
        )
    return ""


def _errors(result: Released) -> list[tuple[str, float, float, float]]:
    if isinstance(result, SelectionResults):
        return [] if result.regression is None else _errors(result.regression)
    if isinstance(result, RegressionResults):
        names: Iterable[str] = result.exog_names
        columns = (result.params, result.bse_sampling, result.bse_privacy)
    elif isinstance(result, Estimates):
        names = [
            ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
            for label in result.params.index
        ]
        columns = (result.params, result.bse_sampling, result.bse_privacy)
    else:
        return []
    return [(n, *map(float, line)) for n, *line in zip(names, *columns, strict=True)]  # type: ignore[misc]
