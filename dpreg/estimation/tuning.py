"""Every number of this room that follows from no definition, proof or precision, in one place.

Those of `method="objective"` were chosen on 2026-10-29 on drawn tables of 26 kinds, of 1,000 and
4,000 rows at eps = 1, by the excess of the mean squared error:

    python -m benchmarks.regression --most 22000

Those of blocks, quantiles and histograms on drawn samples:

    python -m benchmarks.classic

Those of one release of all moments on real and drawn tables:

    python -m benchmarks.regression
    python -m benchmarks.wide

Tested in `tests/test_count.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final


@dataclass(frozen=True, slots=True)
class Tuning:
    """What estimators other than looks are tuned by.

    Attributes
    ----------
    sums : Fraction
        Share of eps of the four sums of `method="objective"`, and of its columns' sums if they are
        released: half of it or twice as much did worse.
    first, spread : Fraction
        Shares of its first minimum and of its residuals' spread. The second minimum has the rest.
    centred : float
        Columns are centred where the noise in the mean of one of them has at most this standard
        deviation, of the half width of the box: more noise moves centres farther than columns
        usually are from the middle of their bounds.
    reach : float
        R^2 beside the expected squared length of (1, u).
    pull : float
        S beside R in the first minimum: cutting residuals sooner than at one standard deviation
        costs little there, for the noise is in proportion to S.
    soonest : float
        Least S beside R in the second, in units of omega.
    skew : float
        Of the square of e^-(1 + k), which is how far cutting at k moves the middle of exponential
        errors, in units of omega: most errors are less skewed. The excess was .88 times that of
        k = .8 throughout, in the mean: from a twentieth with skewed errors to 2.2 times with
        symmetric heavy tails, which k = .8 suits. With .5 it was 1.1 times as large as with this.
    cut : float
        Residuals are cut there for their mean square, in units of s_y: one row moves it by 9 / n.
    least_column, least_response : float
        Variances below which the box is far too wide for a column, or for the response or the
        residuals: finer coordinates would have rows farther out than there are.
    parts : int
        g: parts of a block for the bias correction.
    window_need, window_blocks : int
        Blocks times eps/(d k) at which a window is found, and from which on one is looked for.
    window_reach, window_scale : float and Fraction
        Half the window, in units of the scale found; share of the eps of a window for that scale.
    rows_in_block : int
        Least rows of a block that are aimed at.
    bins : float
        Bins of a fine histogram over the cube root of the rows: two to four times as many as smooth
        densities want.
    bins_rows : int
        eps above 1 over this counts all rows.
    few : float
        Rows in a bin below which an interval of its share is rough.
    expected_norm : float
        B of one release of moments: the squared length of the coefficients, in stored units, that
        public rules assume.
    floor : float
        Least eigenvalue taken for true, as a share of the noise's norm nu.
    levels : int
        Columns of a factor from which on its levels are solved for one by one. Factors of 8 to 19
        are closer to the truth this way, by up to a half, in tables of 20,000 rows and more at
        eps = 1.
    tail, widest_tail : float
        Tail probability from which on a drawn law goes on with an exponential tail, and its most
        where draws are few.
    """

    sums: Fraction = Fraction(8, 100)
    first: Fraction = Fraction(30, 100)
    spread: Fraction = Fraction(5, 100)
    centred: float = 0.2
    reach: float = 1.2
    pull: float = 0.7
    soonest: float = 0.8
    skew: float = 0.15
    cut: float = 3.0
    least_column: float = 1e-3
    least_response: float = 1e-4
    parts: int = 4
    window_need: int = 150
    window_blocks: int = 200
    window_reach: int = 5
    window_scale: Fraction = Fraction(2, 5)
    rows_in_block: int = 20
    bins: float = 8.0
    bins_rows: int = 5
    few: float = 10.0
    expected_norm: float = 0.25
    floor: float = 0.1
    levels: int = 8
    tail: float = 1 / 200
    widest_tail: float = 0.25


TUNING: Final = Tuning()
