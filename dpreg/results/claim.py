"""What stands beside released numbers: the claim, the record, and what each look released.

A claim is the neighbour relation, the budget, and the sentence that says it. It travels with every
result, stands in each of its views, and is made of public facts alone.

A record is when, by what and at whose cost: public facts alone. It never holds anything computed
from the rows that was not released: no hash of the data, no path, no table. The ledger is named by
the random name that it got when it was made.

Nor does it tell how long a call took, which depends on the rows. Its time is that of the charge, or
of the call's start where no ledger is charged: no row is read before. It is cut to the minute, as
the start of what comes next in a program may be the end of what was before. The ledger, which
readers do not see, keeps seconds; the head that a record names is a hash of them and of a random
token of 128 bits, so that they cannot be guessed from it.

Tested in `tests/results/test_claim.py`, `tests/results/test_serialize.py` and
`tests/api/test_adaptive.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cache, partial
from importlib import metadata
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
import pandas as pd

from dpreg.errors import ArgumentError
from dpreg.paths import catalogue
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget, BudgetTable
from dpreg.privacy.protection import Protection
from dpreg.results.saved import Matrix, Settled, Vector

_Table = TypeVar("_Table", pd.Series, pd.DataFrame)

_WORDS: Final = catalogue("claim.toml")
STAMP: Final = "NOT PRIVATE: seeded"
"""The mark on every view of a result whose noise came from a seeded generator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyClaim:
    """The privacy claim of a release.

    Parameters
    ----------
    neighbors : {"replace-one", "add-remove"}
        Which tables count as neighbours. Under replace-one n is public.
    contributions : int
        k: the largest number of rows that one person owns; with `person`, that are used of one.
    spends : BudgetTable
        What each step cost; its total is what the release cost.
    seeded : bool
        True when the noise came from `unsafe_seed`: nothing is claimed then.
    person : str, optional
        The column that says whose row it is.
    whole : bool
        Whether all rows of a person count, summed before they are limited; `contributions` then
        limits only rows from which bounds were bought.
    caveats : tuple of str
        Sentences that bound what the mechanism leaves out (precision of the noise, say). They
        become part of the claim.
    """

    neighbors: str
    contributions: int
    spends: BudgetTable
    seeded: bool
    person: str | None = None
    caveats: tuple[str, ...] = ()
    whole: bool = False
    sparing: ClassVar = ("whole",)

    def __post_init__(self) -> None:
        """Reject claims that no mechanism of dpreg could make."""
        protection = Protection(self.neighbors, self.contributions, self.person)
        if self.whole and self.person is None:
            raise ArgumentError("whole needs the person whose rows were summed")
        object.__setattr__(self, "caveats", tuple(self.caveats))
        spends = BudgetTable(self.spends.spends, protection.apart)
        object.__setattr__(self, "spends", spends)
        _ = spends.total  # a total that promises nothing is refused here, not when printed

    @classmethod
    def of(cls, account: Account, *, whole: bool = False) -> PrivacyClaim:
        """Claim what a call's account protects and was charged, once all is drawn."""
        return cls(
            neighbors=account.protection.neighbors,
            contributions=account.protection.contributions,
            spends=account.table(),
            seeded=account.rng is not None,
            person=account.protection.person,
            whole=whole,
        )

    @property
    def spent(self) -> Budget:
        """The total cost, exact."""
        return self.spends.total

    @property
    def stamp(self) -> str | None:
        """`STAMP` for a seeded release, else None."""
        return STAMP if self.seeded else None

    @property
    def sentence(self) -> str:
        """State exactly what is claimed."""
        body = " ".join((_guarantee(self), *self.caveats))
        if not self.seeded:
            return body
        return str(_WORDS["seeded"]).format(stamp=STAMP, claim=body)

    def titled(self, title: str) -> str:
        """Return `title` with the stamp, if there is one, as a repr that shows no numbers."""
        return f"<{title}; {self.stamp}>" if self.stamp else f"<{title}>"

    def marked(self, table: _Table) -> _Table:
        """Return a series or a frame with the stamp, if there is one, in its `attrs`."""
        if self.stamp:
            table.attrs["privacy"] = self.stamp
        return table


def _guarantee(claim: PrivacyClaim) -> str:
    (eps, delta), k = claim.spent.as_decimal(), claim.contributions
    own = "owns" if claim.person is None else "whole" if claim.whole else "limited"
    change = _WORDS["rows" if claim.person is None else "persons"][claim.neighbors]
    rows, were = ("one row", "was") if k == 1 else (f"{k} rows", "were")
    who = _WORDS["who"][own].format(person=claim.person, rows=rows, were=were)
    slack = "" if claim.spent.delta == 0 else f" plus {delta}"
    return str(_WORDS["sentence"]).format(eps=eps, delta=delta, change=change, who=who, slack=slack)


_LIBRARIES: Final = ("dpreg", "opendp", "python-flint", "numpy", "scipy")
"""What draws noise, and what computes with it."""


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of dpreg and of the libraries that noise and arithmetic come from."""
    return {name: metadata.version(name) for name in _LIBRARIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPosition:
    """Where a release stands in its ledger.

    Attributes
    ----------
    ledger : str
        The ledger's random name.
    entry : int
        The number of the entry that paid for the release.
    head : str
        The chain's head after it, for `dpreg ledger verify --head`.
    cap_eps, cap_delta, spent_eps, spent_delta : str
        The data set's cap, and all that was charged up to this entry; exact.
    """

    ledger: str
    entry: int
    head: str
    cap_eps: str
    cap_delta: str
    spent_eps: str
    spent_delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRecord(Settled):
    """When and how a result was released.

    Attributes
    ----------
    call : str
        The public function, such as "dp_select".
    arguments : mapping
        Its public arguments as typed, in JSON's own types.
    when : str
        UTC, ISO 8601, to the minute: when it was charged; see above.
    versions : mapping
        Of dpreg and of the libraries of its noise.
    ledger : LedgerPosition or None
        None where no ledger was charged.
    """

    call: str
    when: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    ledger: LedgerPosition | None = None

    def _faults(self) -> Iterator[tuple[bool, str]]:
        try:
            datetime.fromisoformat(self.when)
        except ValueError:
            yield True, "when must be a time in ISO 8601"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Look(Settled):
    """A released moment matrix, and the coordinates that its rows were written in.

    A row (1, x, y) in stored units is seen as z = (c, c u, clip(c^a e, -g, g)) with a = `power`,
    u = `whitening` x + `offset`, e = (y - `center`'(1, x)) / `width`,
    c = min(1, `radius` / norm of (1, u)) and g = min(`stretch`, `radius` / norm of (c, c u));
    on the unit scale u = x, e = y and c = g = 1.

    Parameters
    ----------
    mechanism : {"gaussian", "matrix-laplace", "objective perturbation"}
        After the latter the coefficients were released alone: `center` are these, and `cells` and
        `noise_sd` those of the look that this equals, with the moments of the look before.
    share : Fraction
        Of what the looks cost together: of mu^2 for Gaussian noise, of eps for matrix-Laplace.
    radius : float or None
        R; None on the unit scale.
    width : float
        tau, in units of the stored response.
    opened : bool
        Whether R and tau were widened beyond the usual, since the noise is small.
    weight : float
        Mean squared weight c^2 of the complete rows, as released.
    cells, noise_sd : (D, D) arrays
        The noisy sum z z', and the standard deviation of each cell's noise; 0 where a cell is
        known without a release.
    whitening : (p, p) array
    offset : (p,) array
    center : (p + 1,) array
        The intercept and slopes that the response is measured from.
    stretch : float
        How many times farther than `width` residuals of rows that lie near may reach; from 1.
    power : float
        Of the weight c that residuals are multiplied by: 1, or -1/2 where R was widened far.
    """

    mechanism: str
    share: Fraction
    radius: float | None
    width: float
    opened: bool
    weight: float
    cells: Matrix
    noise_sd: Matrix
    whitening: Matrix
    offset: Vector
    center: Vector
    stretch: float = 1.0
    power: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedLook(Settled):
    """What one look of an adaptive fit released; see `dpreg.looks`.

    With p columns in stored units, d = p + 1, v = (1, `whitening` x + `offset`) and e what is left
    of the response at the coefficients `center`, sums over rows (or persons) that are limited.

    Parameters
    ----------
    kind : {"box", "locating", "fitting", "minimum"}
    mechanism : {"gaussian", "matrix-laplace"}
    share : Fraction
        Of what the looks cost together: of mu^2 for Gaussian noise, else of eps.
    limits : tuple of float
        How far a row may reach: A and S of a fitting look, R and tau of a locating one.
    information : (d, d) array
        Sum of weighted v v'; on the unit scale the moments of (1, x, y).
    score : (d,) array
        Sum of weighted e v.
    middle : (d, d) array
        Sum of a score's square; empty where only its `trace` was released.
    information_sd, score_sd, middle_sd : float
        Standard deviation of the noise in an off-diagonal cell, a cell, and an off-diagonal cell or
        the trace.
    trace : float
    whitening : (p, p) array
    offset : (p,) array
    center : (d,) array
    weight : float
        The mean weight that rows are measured by; about 1 in a linear model.
    """

    kind: str
    mechanism: str
    share: Fraction
    limits: tuple[float, ...]
    information: Matrix
    information_sd: float
    score: Vector = field(default_factory=partial(np.zeros, 0))
    score_sd: float = 0.0
    middle: Matrix = field(default_factory=partial(np.zeros, (0, 0)))
    middle_sd: float = 0.0
    trace: float = 0.0
    whitening: Matrix
    offset: Vector
    center: Vector
    weight: float = 1.0
