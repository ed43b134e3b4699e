"""Integer scores of models, canonical by definition.

**Definition.** With the exact integer moments G, b (units of 2**-40), a set of columns M, a radius
rho and the grid g = score_grid(rho), all exact numbers,

    F_rho(M) = min over beta supported on M, |beta|_1 <= rho, of  beta' G beta - 2 b' beta
    q(M)     = max(floor(F_rho(M) / g), -2**61)

(y'y is dropped: a shift common to all models). q is the floor of an exactly defined real number, so
it depends on the moments, the model and the radius and on nothing else: no order of evaluation,
batch, thread, warm start, library or machine. F is non-increasing in M (a larger set minimises over
more), and floor is monotone, so q is too.

**How.** Tier 1: float64 candidates for all models at once, each with a proved interval around F
(`certificate.FloatForm`); where the floors of both ends agree, that is q. Tier 2: for those left,
Newton steps with exact integer slopes and an exact interval (`certificate.IntegerForm`). Tier 3:
for those left, exact rational optimisation (`exact.ball_minimum`), which always ends and decides
ties. Each tier returns q or nothing, so which one decides changes the time taken alone. Candidates
are never trusted: a wrong one only sends its model to the next tier.

**Width.** F_rho >= -y'y, so q reaches -2**61 only from 2**36 rows on; there it stays, for any more
rows. The limit moves no change of q beyond its bounds: the changes of `score_range` lie in an
interval that holds 0 (beta = 0 costs a row nothing), and the limit moves each change towards 0.

No value of the data raises or warns.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Bools, Floats, Ints, Places
from dpreg.errors import ArgumentError
from dpreg.grouped import MOMENT_BITS
from dpreg.moments import Moments
from dpreg.privacy.sensitivity import score_grid
from dpreg.selection.scoring.certificate import LEAST_SCORE, FloatForm, IntegerForm
from dpreg.selection.scoring.constrained import Candidates, solve, solve_one, vertex_signs
from dpreg.selection.scoring.exact import ball_minimum

__all__ = ["Problem"]


_BATCH = 1 << 14  # models in memory at once
_SMALLEST, _LARGEST = Fraction(1, 2**64), Fraction(2**64)  # radii that float64 holds with room


class Problem:
    """Scores of models for given moments and radius.

    Parameters
    ----------
    moments : Moments
        Of rows z = (1, x_1..x_p, y): a Gram matrix, as `accumulate` makes them.
    rho : Fraction
        The radius in stored units, R / c; positive.
    """

    def __init__(self, moments: Moments, rho: Fraction) -> None:
        if not _SMALLEST <= rho <= _LARGEST:
            raise ArgumentError("the radius, in units of the clipped response, must lie in 2**+-64")
        self.group = moments.group
        self.rho = rho
        self.rho_float = float(rho)
        self.grid = score_grid(rho)
        self.width = moments.size - 1
        self._gram = [list(row[:-1]) for row in moments.cells[:-1]]
        self._cross = [row[-1] for row in moments.cells[:-1]]
        self._unit = self.grid * (1 << MOMENT_BITS)  # of a score, in cells; a power of two
        self._per_unit = float(1 / self._unit)
        self._floats = FloatForm(
            np.array(self._gram, dtype=np.float64).reshape(self.width, self.width),
            np.array(self._cross, dtype=np.float64),
            moments.cells[-1][-1],
            rho,
        )
        self._integers = IntegerForm(
            self._gram, self._cross, moments.cells[-1][-1], rho, self._unit
        )

    def moments(self) -> tuple[Floats, Floats]:
        """Return X'X and X'y in units of 1, each cell correctly rounded to float64."""
        scale = 2.0**-MOMENT_BITS
        return self._floats.gram * scale, self._floats.cross * scale

    def scores(self, columns: Bools) -> Ints:
        """Return q(M) for each row of `columns`, bool (K, p + 1): int64 (K,)."""
        return self.scores_by_tier(columns)[0]

    def scores_by_tier(self, columns: Bools) -> tuple[Ints, NDArray[np.int8]]:
        """Return the scores and the tier (1, 2, 3) that decided each. Tiers are curator-only."""
        scores = np.zeros(len(columns), dtype=np.int64)
        tiers = np.ones(len(columns), dtype=np.int8)
        for start in range(0, len(columns), _BATCH):
            batch = slice(start, start + _BATCH)
            scores[batch], tiers[batch] = self._batch(columns[batch])
        return scores, tiers

    def score_one(self, columns: Sequence[int], beta: Floats | None = None) -> int:
        """Return q(M) of one model.

        Parameters
        ----------
        columns : z columns of the model
        beta : array over `columns`, optional
            A candidate of any quality. It changes the time taken, never the score.
        """
        members = np.asarray(columns, dtype=np.intp)
        gram, cross = self._floats.gram, self._floats.cross
        local = solve_one(gram[np.ix_(members, members)], cross[members], self.rho_float, beta)
        model = np.zeros((1, self.width), dtype=np.bool_)
        model[0, members] = True
        guess = np.zeros((1, self.width))
        for candidate in local:
            guess[0, members] = candidate
            scores, sure = self._certified(guess, model)
            if sure[0]:
                return int(scores[0])
        return int(self.scores(model)[0])

    def constrained(self, columns: Bools) -> Candidates:
        """Return float64 minimisers (stored units), uncertified, for each row of `columns`."""
        return solve(self._floats.gram, self._floats.cross, self.rho_float, columns)

    def _batch(self, columns: Bools) -> tuple[Ints, NDArray[np.int8]]:
        found = self.constrained(columns)
        scores, sure = self._certified(found.beta, columns)
        tiers = np.ones(len(columns), dtype=np.int8)
        left = np.flatnonzero(~sure)
        if left.size:
            some = _rows(found, left)
            refined = self._integers.decide(some, columns[left])
            scores[left] = refined.scores
            tiers[left] = np.where(refined.decided, 2, 3)
            for i in np.flatnonzero(~refined.decided):
                scores[left[i]] = self._exact(columns[left[i]], some, int(i))
        return scores, tiers

    def _certified(self, beta: Floats, columns: Bools) -> tuple[Ints, Bools]:
        lower, upper = self._floats.interval(beta, columns)
        low, high = np.floor(lower * self._per_unit), np.floor(upper * self._per_unit)
        low, high = np.maximum(low, LEAST_SCORE), np.maximum(high, LEAST_SCORE)
        sure: Bools = low == high
        return np.where(sure, high, 0.0).astype(np.int64), sure

    def _exact(self, columns: Bools, found: Candidates, row: int) -> int:
        members = np.flatnonzero(columns).tolist()
        place = {c: i for i, c in enumerate(members)}
        minimum = ball_minimum(
            [[self._gram[i][j] for j in members] for i in members],
            [self._cross[i] for i in members],
            self.rho,
            [(place[j], sign) for j, sign in vertex_signs(found, row)],
        )
        return max(floor(minimum.value / self._unit), LEAST_SCORE)


def _rows(found: Candidates, rows: Places) -> Candidates:
    return Candidates(found.beta[rows], found.active[rows], found.signs[rows], found.binding[rows])
