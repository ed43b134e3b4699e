"""What numbers a public call takes: one range for each, checked before anything is charged.

Inside them everything that follows a charge is computed in float64 without an end that an error
would have to tell, which could depend on rows or on noise: `tests/audit/test_edges.py` holds every
public call at all ends at once. Outside nothing useful is lost: an eps of a million promises
nothing, one of a millionth buys nothing but noise, and a column whose cells are larger than 1e100
can be given in another unit.

Tested in `tests/audit/test_edges.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Final

LEAST_EPS: Final = Fraction(1, 10**6)
"""Of a call, and of each of its steps."""
MOST_EPS: Final = Fraction(10**6)
LEAST_DELTA: Final = Fraction(1, 10**300)
"""Or 0; and always below 1."""
MOST_ROWS: Final = 10**6
"""That one person may own."""

_LEAST, _MOST = 1e-100, 1e100
SIZES: Final = "0, or between 1e-100 and 1e100 in size"
"""What bounds of columns, and the edges of bins, may be."""


def fit(numbers: Iterable[float]) -> bool:
    """Tell whether all bounds are 0, or between 1e-100 and 1e100 in size."""
    return all(one == 0 or _LEAST <= abs(one) <= _MOST for one in numbers)
