"""Every number of this room that follows from no definition, proof or precision, in one place.

They were chosen on 2026-11-23 and 24 on the tuning half of `benchmarks.holds` (real tables and
drawn ones; 6 to 10 runs a case), by shares held and widths:

    python -m benchmarks.holds --half tuning --eps 1 --delta 1e-6
    python -m benchmarks.holds --half tuning --eps 1 --delta 0

Numbers named together below are one. Effects are those of that half at eps = 1 and delta = 1e-6
unless eps is said to be pure; "unmarked" is the share of unmarked slopes that hold. What has no
effect beside it was chosen on a float prototype that saw other tables, and is kept.

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
    early : float
        Share of mu^2 of each look but the last; also the trace's share of the last look at pure eps
        (.02 and .08 do no better). Shares of .08, then .06, do as well. Where rows are few
        `LookPlan.early` makes it larger: else the excess of predictions, beside 0.2 with delta,
        would be 1.6 for 1.24 (`python -m benchmarks.regression --methods auto`, 24 runs a cell);
        were it .13 for all tables, real intervals would hold .937 at 1.87 for .944 at 1.74
        (2026-11-28).
    looks, looks_pure : int
        How many of them there are between the first and the last. With delta two are as wide, and
        errors a tenth larger; ending early where the fit had settled was worth nothing. Were the
        first two of them locating looks, right models would be 1.45 wide for 1.52, with .09 of
        slopes marked for .13; but of real tables with fewer than 8,000 rows unmarked slopes would
        hold .82 for .885, as phi of limited residuals is too small (20 releases, 2026-11-27).
    choosing, choosing_pure : tuple of float
        Shares of the looks in between where terms are chosen; the last is also that of the first
        look at pure eps, and of all looks before a minimum: with a fifth the excess of predictions,
        beside 0.2, would be 1.52 for 1.27 (`python -m benchmarks.regression --methods auto --most
        22000`, 2026-11-28), and errors on the held-out half a tenth larger. Where weights follow
        the fit both are those of the looks that lead to a minimum and wait for it. Did the second
        look not wait, the excess deviance of a `dp_glm` would be 1.4 times 0.2's for 1.6, but real
        intervals of these would hold .89 for .97 (20 releases, both halves, 2026-11-29); with .25
        and .1, or .15 and .15, both do as they do.
    left : float
        What signal of a choice's looks noise is balanced for, in units of phi.
    fresh, fresh_pure : float
        Share of looks at chosen columns, where the caller names none. With delta .1, .2 and .3 find
        9.7, 9.6 and 9.6 terms of King County, 6.7, 6.6 and 6.5 of randhie, 4.3, 4.0 and 3.8 of
        bike; pure .1, .15, .2 and .3 find 7.7, 7.4, 6.9 and 5.6 of King County, and the same of the
        others (2026-11-24, `python -m benchmarks.power --grid real --runs 40 --share .9`, ...).
        Widths go with the share to the power -1/3, or -2/3. With delta there are two such looks,
        and `fresh` is the first one's share of it too: at .12 and .25 errors and widths are within
        a twentieth.
    outer_pure : int
        How many times as long as its inner part the outer part of a score may be at pure eps, or
        how many times as much noise it has beside a minimum, where 1.5 and 3 do no better. At 1
        right models are 2.4 wide for 1.8, and the excess of predictions, beside 0.2, is 3.9 for
        2.9 (`python -m benchmarks.regression --methods auto --most 22000`). At 3 that is 2.8, but
        at eps = 2 real tables are 2.7 wide for 2.4 (20 releases, both halves, 2026-11-28).
    radius_choosing, radius_choosing_pure, residual_choosing, residual_blind : float
        R and tau of a choice's looks; the last of a yes/no response, over its usual reach.
    information, information_early, information_most : float
        H's share of a fitting look: the last one's, and that of one in between, where its noise
        leaves room for usual rows; and where it does not the most. Were it always the least, .20 of
        real slopes would be marked or absent for .16 (20 releases, 2026-11-28). With .15 for both
        rare levels hold less (`diamonds_I1` .4 for .96).
    loud : float
        The norm of H's noise over n, or twice a minimum's penalty: were it the penalty alone, the
        excess of predictions would be 1.42 times 0.2's for 1.27 (`python -m benchmarks.regression
        --methods auto --most 22000`). Less hides fewer directions and limits more rows; at .2 and
        with a share of .2 widths were a tenth larger and hidden columns held less.
    limit, limit_wide : float
        c of a score's limit (`dpreg.looks.locate`). The latter at pure eps, and of looks at chosen
        columns, which begin far from where the fit ends: were their last limit to follow from the
        first, intervals would hold .94 for .92, but at 2.5 for 2.3, and with few rows at twice that
        (8 releases, 2026-11-28, `python -m benchmarks.fresh`, `benchmarks.beside`). With .04,
        .06 and .08 unmarked slopes hold .941, .947 and .947 at widths of 1.74, 1.77 and 1.75, right
        models .929, .940 and .949 at 1.30, 1.37 and 1.42 (20 releases, both halves, 2026-11-28).
        With .25 pure intervals hold .92 at 3.7 for .93 at 3.8 (10 releases, 2026-11-28).
    limit_minimum : float
        c beside a minimum, but of looks at chosen columns. With .1 and .35 the excess deviance of a
        `dp_glm` is .98 and 1.05 times as much (`python -m benchmarks.glm_peers`, 2026-11-29).
        With .15 real intervals at eps = 1 hold .92, and the excess of predictions is 1.20 times
        0.2's for 1.27 (10 releases, 2026-11-28); with .35 it is 1.46, and errors on the held-out
        half an eighth larger (20 releases).
    doubt : float
        Standard errors by which what a limit cut may exceed what was seen of it; times by which the
        variance that estimates are drawn by exceeds what looks usually leave over. Of limits: at 0
        right models hold .83 for .94 (8 releases, 2026-11-28); at 3 they hold as much, 1.41 wide
        for 1.37 (20). Did S follow from c alone, at .35 as at pure eps, they would be 1.58 wide,
        and the excess of predictions 1.7 times as large.
    radius, residual : float
        R and tau of a locating look, over the located scale: with R of 2 pure intervals hold .90
        of the time where they hold .93; at 1.3 or tau of 1.7 they are a tenth and a fifth wider.
    sure : float
        Norms of noise that an eigenvalue must stand above to be taken for shown: at 1 hidden
        columns hold less, at .3 widths are a tenth larger. The part of what a look showed of the
        columns that is counted on where weights follow the fit: at 1 errors of a logit are .1 short
        at eps = 1e6.
    longest : float
        Longest step, a row, in units of the predictor, and largest standard deviation of
        predictors while the fit is being located (6 of a logit does no better; at 1 errors are .07
        larger). A fit has converged where the last step is shorter than half of it. Also by how
        many standard deviations of predictors a count's mean is followed before it goes on
        straight: with 1 the excess deviance of a `dp_glm` is as much (`python -m
        benchmarks.glm_peers`).
    least : float
        Least part of what is expected that is believed of a release: of the rows that H counts, of
        the weight, of an eigenvalue of M in units of phi (and the inverse of its most). At .2 and
        .3 it does the same.
    prior : float
        Variance of theta in units of phi before the last look; d/n of it is what looks leave over.
        At 16 widths are .03 larger, at 1 hidden columns fail. Were estimates drawn by phi alone,
        a few releases in a hundred would end far off where a rare column is hidden: with delta at
        eps = 1 the mean excess of King County would be .06 for .006, of randhie .03 for .005 (80
        runs, 2026-11-28).
    guess : float
        Share of a variance that is a guess at what H lacks, or its noise, above which a coefficient
        is marked. At .6, .65 and .75 unmarked slopes hold .94 alike, and .14, .13 and .12 of them
        are marked or absent, of right models .10, .10 and .09 (20 releases, both halves,
        2026-11-28).
    """

    early: float = 0.07
    looks: int = 3  # work
    looks_pure: int = 2  # work
    choosing: tuple[float, ...] = (0.15, 0.10)
    choosing_pure: tuple[float, ...] = (0.20, 0.15)
    left: float = 0.15
    fresh: float = 0.2
    fresh_pure: float = 0.15
    outer_pure: int = 2
    information: float = 0.12
    information_early: float = 0.35
    information_most: float = 0.7
    loud: float = 0.15
    limit: float = 0.06
    limit_wide: float = 0.35
    limit_minimum: float = 0.2
    doubt: float = 2.0
    radius: float = 1.4
    residual: float = 2.5
    radius_choosing: float = 1.3
    radius_choosing_pure: float = 1.1
    residual_choosing: float = 1.7
    residual_blind: float = 0.8
    sure: float = 0.7
    longest: float = 2.0
    least: float = 0.5
    prior: float = 4.0
    guess: float = 0.65

    @property
    def early_pure(self) -> float:
        """Share of eps of each look but the last, which has two such shares, without a minimum.

        Errors are half as large again with .15 in the place of a fifth.
        """
        return 1 / (self.looks_pure + 3)


TUNING: Final = Tuning()
