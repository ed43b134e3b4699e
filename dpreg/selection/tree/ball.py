r"""The second view of a state: bounds from the fit that the l1 ball constrains.

Where |least squares|_1 > rho the ball binds, and least squares alone bounds F_rho badly (for more
columns than rows not at all). Inequality (1) of `bounds` holds for every beta0; here beta0 is
the constrained fit, which attains it (the last term is then minus 2 rho times the multiplier mu),
and for one more unit removed, the constrained fit's own support refitted with mu held fixed. Both
are candidates found in plain floats, by a primal active-set method that may stop early: what they
are worth is computed afterwards, rounded outwards.

Tested in `tests/selection/tree/test_sampler.py`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpreg.arrays import Floats, Places

__all__ = ["ball_fit", "certify", "without_each"]


_2U: Final = 2.0**-52
_STEPS: Final = 40  # a guess that stops early is a valid, weaker bound: no law depends on it
_CAREFUL: Final = 15
_LOOKED_AT: Final = 24


def ball_fit(gram: Floats, cross: Floats, rho: float, allowed: Floats, start: Floats) -> Floats:
    """Return about the minimiser over |beta|_1 <= rho of beta'G beta - 2 b'beta.

    Guess the active columns and their signs, solve G_PP beta = b_P - mu s, s'beta = rho, drop the
    columns whose sign came out wrong, add those whose slope exceeds mu, and repeat: a primal-dual
    active-set method (Hintermueller, Ito & Kunisch 2003). It mostly ends within ten steps; where
    it does not, the best guess so far is used.

    Parameters
    ----------
    allowed : float array (d,)
        1 for columns that may be used, 0 for others.
    start : float array (d,)
        Its signs on the allowed columns are the first guess.
    """
    signs = np.sign(start) * allowed
    near = 1e-9 * float(np.abs(cross).max(initial=0.0))
    best, least = np.zeros_like(cross), 0.0
    for step in range(_STEPS):
        active = np.flatnonzero(signs)
        beta = np.zeros_like(cross)
        mu = 0.0
        if active.size:
            s = signs[active]
            try:
                pair = np.linalg.solve(
                    gram[np.ix_(active, active)], np.column_stack([cross[active], s])
                )
            except np.linalg.LinAlgError:
                break
            x, z = pair[:, 0], pair[:, 1]
            mu = max(float((s @ x - rho) / max(float(s @ z), 1e-300)), 0.0)
            beta[active] = x - mu * z
            signs[active[beta[active] * s <= 0]] = 0.0
        slope = (cross - gram[:, active] @ beta[active]) * allowed
        quadratic = float(beta[active] @ (cross - slope)[active])
        slope[active] = 0.0
        value = -quadratic - 2 * rho * max(mu, float(np.abs(slope).max(initial=0.0)))
        if step == 0 or value > least:
            best, least = beta, value
        outside = np.flatnonzero(np.abs(slope) > mu + near)
        if not outside.size and signs[active].all():
            break
        if step >= _CAREFUL:  # one column at a time from here on
            outside = outside[np.argsort(-np.abs(slope[outside]))[:1]]
        signs[outside] = np.sign(slope[outside])
    return best


def certify(
    gram: Floats, cross: Floats, rho: float, allowed: Floats, active: Places, beta: Floats
) -> Floats:
    """Return (1) without its sum over R, rounded down, for each column of `beta`.

    Parameters
    ----------
    allowed : float array (d,) or (d, m)
        1 on A.
    active : int array (k,)
        Where beta0 is not zero.
    beta : float array (k, m)

    Returns
    -------
    float array (m,)
        Error bound: with w = sum |beta0|, each cell of G beta0 errs by at most
        (k + 8) 2**-52 max(G) w, and beta0'G beta0 by at most twice w times that.
    """
    largest = float(gram.diagonal().max(initial=0.0))
    fitted = gram[:, active] @ beta
    norm = np.abs(beta).sum(axis=0) * (1 + 2.0**-30)
    slack = (len(active) + 8) * _2U * (largest * norm + float(np.abs(cross).max(initial=0.0)))
    slope = np.abs(cross[:, None] - fitted) * (allowed if allowed.ndim == 2 else allowed[:, None])
    steepest = slope.max(axis=0, initial=0.0) + slack
    quadratic = (beta * fitted[active]).sum(axis=0)
    lower = -quadratic - 2 * norm * slack - 2 * rho * (1 + 2.0**-30) * steepest
    bound: Floats = lower - np.abs(lower) * 2.0**-40
    return bound


def without_each(
    gram: Floats,
    cross: Floats,
    rho: float,
    allowed: Floats,
    fit: Floats,
    units: list[list[int]],
) -> tuple[Places, Floats, Floats]:
    """Return bounds for the units whose removal from the constrained fit costs most.

    Parameters
    ----------
    units : list of lists of int
        The columns of the units left.

    Returns
    -------
    found : int array
        Positions in `units` of those looked at.
    certified : float array
        (1) when the unit is removed as well, without its sum over R.
    expected : float array
        About how much the bound would rise with a fit of its own.
    """
    active = np.flatnonzero(fit)
    place = {int(column): at for at, column in enumerate(active)}
    inverse = np.linalg.inv(gram[np.ix_(active, active)])
    rise = np.zeros(len(fit))
    rise[active] = fit[active] ** 2 / inverse.diagonal()
    sums = np.array([max(rise[unit]) for unit in units])
    found = np.argsort(-sums, kind="stable")[:_LOOKED_AT]
    found = found[sums[found] > 0]
    beta = np.repeat(fit[active][:, None], len(found), axis=1)
    expected = np.zeros(len(found))
    kept = np.repeat(allowed[:, None], len(found), axis=1)
    for m, u in enumerate(found.tolist()):
        at = [place[c] for c in units[u] if c in place]
        own = fit[active[at]]
        if len(at) == 1:
            step = own / inverse[at[0], at[0]]
        else:
            step = np.linalg.solve(inverse[np.ix_(at, at)], own)
        beta[:, m] -= inverse[:, at] @ step
        beta[at, m] = 0.0
        kept[units[u], m] = 0.0
        expected[m] = own @ step
    return found, certify(gram, cross, rho, kept, active, beta), expected
