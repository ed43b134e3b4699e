r"""The second view of a state: bounds from the fit that the l1 ball constrains.

Where |least squares|_1 > rho the ball binds, and least squares alone bounds F_rho badly (for more
columns than rows not at all). Inequality (1) of `tree_bounds` holds for every beta0; here beta0 is
the constrained fit, which attains it (the last term is then minus 2 rho times the multiplier mu),
and for one more unit removed, the constrained fit's own support refitted with mu held fixed. Both
are candidates found in plain floats, by a primal active-set method that may stop early: what they
are worth is computed afterwards, rounded outwards.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["ball_fit", "certify", "without_each"]

Floats = NDArray[np.float64]

_2U: Final = 2.0**-52
_STEPS: Final = 400  # a guess that stops early is a valid, weaker bound: no law depends on it


def ball_fit(gram: Floats, cross: Floats, rho: float, allowed: Floats, start: Floats) -> Floats:
    """Return about the minimiser over |beta|_1 <= rho of beta'G beta - 2 b'beta.

    Parameters
    ----------
    allowed : float array (d,)
        1 for columns that may be used, 0 for others.
    start : float array (d,)
        Any point of the ball, supported on the allowed columns.
    """
    beta = start * allowed
    signs = np.sign(beta)
    for _ in range(_STEPS):
        active = np.flatnonzero(signs)
        if active.size:
            s = signs[active]
            try:
                pair = np.linalg.solve(
                    gram[np.ix_(active, active)], np.column_stack([cross[active], s])
                )
            except np.linalg.LinAlgError:
                return beta
            x, z = pair[:, 0], pair[:, 1]
            mu = max(float((s @ x - rho) / max(s @ z, 1e-300)), 0.0)
            target = x - mu * z
            wrong = target * s < 0
            if wrong.any():
                now = beta[active]
                share = np.where(wrong, now / np.where(wrong, now - target, 1.0), np.inf)
                first = int(np.argmin(share))
                beta[active] = now + float(share[first]) * (target - now)
                beta[active[first]] = signs[active[first]] = 0.0
                continue
            beta[active] = target
        else:
            mu = 0.0
        slope = np.abs(cross - gram[:, active] @ beta[active]) * allowed
        slope[active] = 0.0
        worst = int(np.argmax(slope))
        if slope[worst] <= mu + 1e-9 * float(np.abs(cross).max()):
            break
        inner = cross[worst] - gram[worst, active] @ beta[active]
        signs[worst] = 1.0 if inner > 0 else -1.0
    return beta


def certify(
    gram: Floats, cross: Floats, rho: float, allowed: Floats, active: NDArray[np.intp], beta: Floats
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
    slope = (np.abs(cross[:, None] - fitted) * (allowed if allowed.ndim == 2 else allowed[:, None]))
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
) -> tuple[Floats, Floats]:
    """Return bounds, certified and expected, on the rise when each unit is removed as well.

    Parameters
    ----------
    units : list of lists of int
        The columns of the units in question; at least one column of each is active in `fit`.

    Returns
    -------
    certified : float array
        (1) for each unit, without its sum over R.
    expected : float array
        About how much the bound would rise with a fit of its own.
    """
    active = np.flatnonzero(fit)
    place = {int(column): at for at, column in enumerate(active)}
    inverse = np.linalg.inv(gram[np.ix_(active, active)])
    beta = np.repeat(fit[active][:, None], len(units), axis=1)
    expected = np.zeros(len(units))
    kept = np.repeat(allowed[:, None], len(units), axis=1)
    for m, unit in enumerate(units):
        at = [place[c] for c in unit if c in place]
        own = fit[active[at]]
        if len(at) == 1:
            step = own / inverse[at[0], at[0]]
        else:
            step = np.linalg.solve(inverse[np.ix_(at, at)], own)
        beta[:, m] -= inverse[:, at] @ step
        beta[at, m] = 0.0
        kept[unit, m] = 0.0
        expected[m] = own @ step
    return certify(gram, cross, rho, kept, active, beta), expected
