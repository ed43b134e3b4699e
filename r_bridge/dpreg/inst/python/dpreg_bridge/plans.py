"""Plans as R sees them: plain numbers, a table, and the page with R's names of terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dpreg.planning import Plan, RegressionPlan
from dpreg.planning.views import regression_report, report
from dpreg.results.report import Grid, Report
from dpreg.results.summary import Summary
from dpreg_bridge.views import frame

__all__ = ["plan_view"]


def plan_view(result: Plan | RegressionPlan, labels: Mapping[str, str]) -> dict[str, Any]:
    """Lay a plan out for R, with R's `labels` of Python's terms in its page."""
    shared = {
        "n": result.n,
        "eps": float(result.eps),
        "solved": result.solved,
        "method": result.method,
        "rows_needed": float(result.rows_needed),
        "terms": tuple(map(str, result.each.index)),
        "each": result.each.to_numpy(dtype=np.float64),
    }
    if isinstance(result, RegressionPlan):
        return {
            **shared,
            "overlap": float(result.overlap),
            "same": float(result.same),
            "coefficients": frame(result.coefficients),
            "text": Summary(_labelled(regression_report(result), labels)).as_text(),
        }
    return {
        **shared,
        "found": float(result.found),
        "right": float(result.right),
        "useless": float(result.useless),
        "rule_of_thumb": int(result.rule_of_thumb),
        "text": Summary(_labelled(report(result), labels)).as_text(),
    }


def _labelled(page: Report, labels: Mapping[str, str]) -> Report:
    blocks = [
        replace(block, rows=tuple((labels.get(row[0], row[0]), *row[1:]) for row in block.rows))
        if isinstance(block, Grid)
        else block
        for block in page.blocks
    ]
    return replace(page, blocks=tuple(blocks))
