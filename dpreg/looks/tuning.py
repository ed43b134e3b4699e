"""Every number of this room that follows from no definition, proof or precision, in one place.

Those of the law were chosen on 2026-11-23 on the tuning half of `benchmarks.holds` (real tables and
drawn ones; eps 1, delta 1e-6; 6 to 10 runs a case), by shares held and widths:

    python -m benchmarks.holds --half tuning --eps 1 --delta 1e-6

Shares of the budget are those of a float prototype that saw other tables; they moved little.

Tested in `tests/looks/test_limits.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["TUNING", "Tuning"]


@dataclass(frozen=True, slots=True)
class Tuning:
    """What looks are tuned by.

    Attributes
    ----------
    box, box_pure : float
        The first look's share of mu^2, or of eps.
    early : tuple of float
        Shares of the looks in between with Gaussian noise: as many as are needed.
    locating_pure : tuple of float
        Those at pure eps: all are made.
    information, information_early : float
        H's share of a fitting look: the last one's, and that of one in between.
    tail : float
        The tail's share of the last look.
    middle_pure, tail_pure : float
        The trace's and the tail's share of the last look at pure eps.
    loud : float
        The norm of H's noise over n. Less hides fewer directions and limits more rows; at .2 and
        with a share of .2 widths were a tenth larger and hidden columns held less.
    limit : float
        c of a score's limit (`dpreg.looks.limits`): .3 holds .93 at width 1.8, .6 .95 at 1.95, 1.2
        .95 at 2.3 (all printed slopes).
    least_limit : float
        Least limit of a score, in units of sqrt(d phi).
    radius, residual : float
        R and tau of a locating look, over the located scale: with R of 2 pure intervals hold .90
        of the time where they hold .93.
    allowance : float
        Of the bound on what limits cut of the score.
    heavy : float
        Share of squared scores beyond half their limit from where on few rows carry the fit. Normal
        scores have less than .1, tables whose intervals failed .29 and more.
    moved, settled, hidden : float
        Another look is made in between while a step is longer (a row, in units of phi), the mean
        weight moves more (log), or the least eigenvalue seen is smaller.
    box_noise : float
        Factor on the norm of the box's noise, whose cells are not alike.
    sure : float
        Norms of noise that an eigenvalue must stand above to be taken for shown: at 1 hidden
        columns hold less, at .3 widths are a tenth larger.
    weights : float
        Part of what a look showed of the columns that is counted on where weights follow the fit.
    gap : float
        Standard deviations of H's noise that count beside a lift.
    least_gap : float
        Lifts of a smaller part of n are rounding.
    longest : float
        Longest step, a row, in units of the predictor.
    least_count : float
        Least part of the rows that H is taken to count.
    least_phi : float
        Least and inverse of the largest eigenvalue of the middle in units of phi.
    sandwich : float
        Spread of these eigenvalues that tables have.
    prior, nearer : float
        Variance of theta in units of phi, and how many times nearer to 0 the estimate is drawn than
        its interval is: at a prior of 1 hidden columns fail, at 4 and 16 they hold.
    most_prior : float
        Share of the prior's variance from which on there is no interval.
    near : float
        Length of the last step, in units of the predictor, below which a fit has converged.
    wide : float
        Share of a variance that is a guess from which on a coefficient is marked.
    """

    box: float = 0.08
    early: tuple[float, ...] = (0.06, 0.06, 0.06)
    box_pure: float = 0.15
    locating_pure: tuple[float, ...] = (0.20, 0.30)
    choosing: tuple[float, ...] = (0.15, 0.10)
    choosing_pure: tuple[float, ...] = (0.20, 0.15)
    left: float = 0.15
    fresh: float = 0.2
    fresh_pure: float = 0.15
    fresh_first: float = 0.25
    information: float = 0.12
    information_early: float = 0.35
    tail: float = 0.02
    middle_pure: float = 0.10
    tail_pure: float = 0.06
    loud: float = 0.15
    limit: float = 0.6
    least_limit: float = 1.25
    radius: float = 1.4
    residual: float = 2.5
    radius_choosing: float = 1.3
    radius_choosing_pure: float = 1.1
    residual_choosing: float = 1.7
    residual_blind: float = 0.8
    allowance: float = 0.21
    heavy: float = 0.3
    moved: float = 0.1
    settled: float = 0.5
    hidden: float = 0.3
    box_noise: float = 1.2
    sure: float = 0.7
    weights: float = 0.8
    gap: float = 2.0
    least_gap: float = 0.01
    longest: float = 2.0
    least_count: float = 0.3
    least_phi: float = 0.3
    sandwich: float = 0.25
    prior: float = 16.0
    nearer: float = 16.0
    most_prior: float = 0.5
    near: float = 1.0
    wide: float = 0.8


TUNING: Final = Tuning()
