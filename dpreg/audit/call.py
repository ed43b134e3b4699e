"""`audit_call` asks whether a whole call keeps the promise that it charges for.

Tested in `tests/audit/test_audit_call.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpreg.audit.events import NOTHING, PUBLIC, Call, Observation, bound, observe, search
from dpreg.errors import ArgumentError
from dpreg.privacy.budget import Budget
from dpreg.running import bar
from dpreg.sources.reader import showing

STAMP = "CURATOR ONLY: not private, do not release"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that breaks the promise: what was seen, in words."""

    what: str
    detail: str

    def __str__(self) -> str:
        """Write it on one line."""
        return f"{self.what}: {self.detail}"


@dataclass(frozen=True, slots=True)
class CallAudit:
    """What an audit found. **Curator only**: it quotes outcomes of runs on confidential rows.

    Attributes
    ----------
    charged : Budget
        What one run charged, and so what is claimed.
    runs : int
        Runs on each table, training and testing together.
    bound : float
        eps is at least this, with the confidence asked for; -inf where nothing was told apart.
    event : str
        The event behind the bound.
    counts : tuple of int
        How often the event happened in the testing runs of the two tables.
    findings : tuple of Finding
        Empty where the call kept its promise as far as these runs can tell.
    """

    charged: Budget
    runs: int
    bound: float
    event: str
    counts: tuple[int, int]
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        """Write the report, stamped."""
        lines = [
            STAMP,
            f"charged: {self.charged}; {self.runs} runs on each table",
            f"eps is at least {self.bound:.4g}, by the event: {self.event}",
            f"which happened {self.counts[0]} and {self.counts[1]} times in the testing runs",
            *(f"FINDING {finding}" for finding in self.findings),
        ]
        return "\n".join(lines if self.findings else [*lines, "nothing breaks the promise"])


def audit_call(
    call: Call,
    table: Any,
    neighbor: Any,
    *,
    runs: int = 1000,
    confidence: float = 0.9999,
    progress: bool | None = None,
) -> CallAudit:
    """Run a call on two neighbouring tables and look for what tells them apart.

    **Curator only**: the report quotes outcomes of runs on confidential rows, and the runs are not
    charged to anyone. It shows breaches; it never proves privacy.

    Parameters
    ----------
    call : callable
        ``call(data, ledger)`` makes the public call with ``budget=ledger`` and returns its result.
        It is judged by what it charges.
    table, neighbor : table
        Neighbours under the call's own relation and contributions. The caller must make
        sure that they are neighbours.
    runs : int
        Runs on each table; half choose an event, the other half count it. At least 4.
    confidence : float
        Of the bound, by Clopper and Pearson's intervals.
    progress : bool, optional
        Show a bar on stderr; default where stderr is a terminal.

    Returns
    -------
    CallAudit
        With a finding where the bound exceeds the eps that was charged; where an exception came
        after the charge; where something that no noise reaches (an error, a warning before the
        charge, a log, what was charged) differs between the tables; or where
        anything else never varies on either table, differs, and would do so by chance too rarely.

    Raises
    ------
    ArgumentError
        For fewer than 4 runs, a confidence outside (0, 1), or a `progress` that is neither a bool
        nor None.

    Examples
    --------
    >>> import numpy as np, pandas as pd, dpreg
    >>> from dpreg.audit import audit_call
    >>> rows = pd.DataFrame({"x": np.linspace(0, 1, 50)})
    >>> other = rows.copy(); other.loc[0, "x"] = 1.0
    >>> mean = lambda data, ledger: dpreg.dp_mean(data["x"], bounds=(0, 1), eps=1, budget=ledger)
    >>> audit_call(mean, rows, other, runs=60).passed
    True
    """
    if runs < 4:
        raise ArgumentError(f"runs must be at least 4; got {runs}.")
    if not 0 < confidence < 1:
        raise ArgumentError(f"confidence must lie between 0 and 1; got {confidence}.")
    seen: tuple[list[Observation], list[Observation]] = ([], [])
    with bar(total=2 * runs, unit=" runs", shown=showing(progress)) as done:
        for _ in range(runs):
            for place, data in enumerate((table, neighbor)):
                seen[place].append(observe(call, data))
                done.update()
    charged = seen[0][0].charged
    miss = 1 - confidence
    findings = [*_after_the_charge(seen), *_told_apart(seen, charged, miss)]
    half = runs // 2
    delta = float(charged.delta)
    training = [[one.seen for one in side[:half]] for side in seen]
    testing = [[one.seen for one in side[half:]] for side in seen]
    event = search(training[0], training[1], delta)
    if event is None:
        return CallAudit(charged, runs, -math.inf, "none", (0, 0), tuple(findings))
    counts = int(event.holds(testing[0]).sum()), int(event.holds(testing[1]).sum())
    least = bound(counts if event.first else counts[::-1], runs - half, delta, miss)
    if least > charged.eps:
        findings.append(Finding("more is spent than charged", f"eps is at least {least:.4g}"))
    return CallAudit(charged, runs, least, str(event), counts, tuple(findings))


def _after_the_charge(seen: Sequence[Sequence[Observation]]) -> list[Finding]:
    """No public call may raise once it has charged."""
    errors = {str(one.seen["raised"]) for side in seen for one in side if one.charged.eps}
    return [Finding("an exception after the charge", one) for one in sorted(errors - {NOTHING})]


def _told_apart(
    seen: Sequence[Sequence[Observation]], charged: Budget, miss: float
) -> list[Finding]:
    """Find what is one thing in all runs on one table, and another in all runs on the other.

    Where noise reaches it, that may be chance: it is reported only if its chance is below `miss`.
    """
    found = []
    names = sorted({name for side in seen for one in side for name in one.seen})
    chance = len(names) * chance_of_constants(len(seen[0]), charged)
    for name in names:
        first, second = ({repr(one.seen.get(name)) for one in side} for side in seen)
        if name in ("raised", "charged") and first != second:
            found.append(Finding(f"{name} tells the tables apart", _pair(first, second)))
        elif len(first) == len(second) == 1 and first != second:
            if name in PUBLIC:
                why = "no noise reaches it, and it differs"
            elif chance < miss:
                why = f"it never varies; by chance once in {1 / max(chance, 1e-99):.2g} audits"
            else:
                continue
            found.append(Finding(f"{name} tells the tables apart ({why})", _pair(first, second)))
    return found


def chance_of_constants(runs: int, charged: Budget) -> float:
    r"""Bound the chance that an observable is one thing on one table and another on the other.

    Statement: at most max over p of p^(m-1) (1 - (p - delta) / exp(eps))^m, m the runs on a table.
    Proof: let a have chance p_a on the first table, so at least (p_a - delta) / exp(eps) on the
    second. All first runs show a, and all second runs another value, with chance at most
    p_a^m (1 - (p_a - delta) / exp(eps))^m; sum over a, where the p_a sum to at most 1.
    """
    if charged.eps > 700:
        return 1.0
    p = np.linspace(0.0, 1.0, 10_001)
    other = np.maximum(p - float(charged.delta), 0.0) * math.exp(-float(charged.eps))
    return float(np.max(p ** (runs - 1) * (1 - other) ** runs))


def _pair(first: set[str], second: set[str]) -> str:
    """Quote both sides, in short."""
    texts = (" or ".join(sorted(side)) for side in (first, second))
    return " against ".join(text if len(text) <= 200 else text[:197] + "..." for text in texts)
