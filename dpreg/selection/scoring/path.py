"""Least squares over the l1 ball by the solution path, for many sets of columns at once.

The minimiser of beta' G beta - 2 b' beta + 2 mu |beta|_1 is piecewise linear in mu (Osborne,
Presnell & Turlach 2000; LARS, Efron et al. 2004). Each set's path is followed from mu = max |b|,
where beta = 0, down to |beta|_1 = rho, by sweeps (Dempster) of its own tableau.

Tested in `tests/selection/scoring/test_constrained.py`.
"""

from __future__ import annotations

import numpy as np

from dpreg.arrays import Bools, Floats, Places
from dpreg.selection.scoring.batches import (
    FEW,
    SINGULAR,
    gather,
)

__all__ = ["follow"]


def follow(gram: Floats, cross: Floats, rho: float, members: Places) -> Floats:
    """Follow the paths of N sets of k columns; return the signs (k, N) where |beta|_1 = rho.

    At most 4 k + 8 steps: a candidate that is not done by then is finished by the exact solver.
    """
    k, total = members.shape
    result = np.zeros((k, total))
    left = np.arange(total)
    state = _Paths(gather(gram, members), cross[members], rho)
    for _ in range(4 * k + 8):
        done = state.step()
        if done.any():
            result[:, left[done]] = state.signs[:, done]
            left = left[~done]
            if left.size == 0:
                return result
            state.keep(~done)
    result[:, left] = state.signs
    return result


class _Paths:
    """The state of N solution paths: tableau T, v = T s, beta, residual correlations, mu, signs.

    The tableau is G swept on the active columns A: T_AA = -inv(G_AA), T_jA = G_jA inv(G_AA), and a
    Schur complement elsewhere. So beta moves by -v on A, and the correlation of j outside by v_j,
    per unit of mu. v follows a sweep on p in O(k): v += u (s_new - v_p), u the swept pivot row.
    """

    def __init__(self, tableau: Floats, cross: Floats, rho: float) -> None:
        self.tableau = tableau
        self.rho = rho
        k, n = cross.shape
        self.scale = np.einsum("iin->in", tableau) * SINGULAR
        self.left_over = cross.copy()
        self.beta = np.zeros((k, n))
        self.signs = np.zeros((k, n))
        self.velocity = np.zeros((k, n))
        self.length = np.zeros(n)
        self.barred = np.zeros((k, n), dtype=np.bool_)
        first = np.abs(cross).argmax(axis=0)
        self.mu = np.abs(cross).max(axis=0)
        self._pivot(first, np.ones(n, dtype=np.bool_))

    def keep(self, rows: Bools) -> None:
        """Go on with some of the paths."""
        for name in ("tableau", "scale", "left_over", "beta", "signs", "velocity", "barred"):
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[..., rows]))
        self.length, self.mu = self.length[rows], self.mu[rows]

    def step(self) -> Bools:
        """Move each path to its next corner; say which paths are at the ball's surface."""
        n = self.mu.size
        idle = self.signs == 0.0
        v = self.velocity
        # Joining: the correlation meets +-mu.
        up = (self.mu - self.left_over) / (1.0 - v)
        down = (self.mu + self.left_over) / (1.0 + v)
        up[~((v < 1.0) & idle)] = np.inf
        down[~((v > -1.0) & idle)] = np.inf
        join = np.minimum(up, down)
        join[self.barred] = np.inf
        # Leaving: a coefficient meets zero; v = -d beta / d mu on the active columns.
        meet = self.beta / v
        meet[~((meet > 0.0) & ~idle)] = np.inf
        corner = np.minimum(np.maximum(join, 0.0), meet)
        which = corner.argmin(axis=0)
        at = np.arange(n)
        reach = corner[which, at]
        speed = -(self.signs * v).sum(axis=0)  # s' inv(G_AA) s
        finish = (self.rho - self.length) / speed
        done: Bools = ~(reach < np.minimum(finish, self.mu))  # also where nothing is left to do
        move = np.where(done, 0.0, reach)
        self.beta -= np.where(idle, 0.0, v) * move
        self.left_over -= np.where(idle, v, self.signs) * move
        self.mu = self.mu - move
        self.length = self.length + speed * move
        leaving = ~idle[which, at]
        self.beta[which[leaving], at[leaving]] = 0.0
        self._pivot(which, ~done)
        return done

    def _pivot(self, which: Places, moving: Bools) -> None:
        """Sweep each moving path on its column `which`: in if idle, out if active."""
        k, n = self.signs.shape
        at = np.arange(n)
        row = self.tableau[which, :, at].T  # (k, N); symmetric
        pivot = row[which, at]
        leaving = self.signs[which, at] != 0.0
        collinear = ~leaving & ~(pivot > self.scale[which, at])
        self.barred[which, at] |= collinear
        go = moving & ~collinear
        share = np.where(go, 1.0 / pivot, 0.0)
        swept = row * share
        side = np.where(leaving, 0.0, np.sign(self.left_over[which, at]))
        old = self.velocity[which, at]
        was = self.signs[which, at]
        if n < FEW:
            self.tableau -= row[:, None] * swept
        else:
            for i in range(k):
                self.tableau[i] -= row[i] * swept
        mine, place = which[go], at[go]
        line = swept[:, go] * np.where(leaving[go], -1.0, 1.0)
        self.tableau[mine, :, place] = line.T
        self.tableau[:, mine, place] = line
        self.tableau[mine, mine, place] = -share[go]
        self.velocity += swept * (side - old)
        self.velocity[mine, place] = np.where(leaving, was - old * share, (old - side) * share)[go]
        self.signs[mine, place] = side[go]
