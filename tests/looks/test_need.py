"""The rows that a staged release needs, against the noise of a look at full resolution."""

from fractions import Fraction

import numpy as np
import pytest

from dpreg.errors import ArgumentError
from dpreg.looks.plan import rows_needed
from dpreg.privacy.look_noise import located_gaussian, located_matrix_laplace
from dpreg.privacy.protection import Protection


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("columns", [2, 9, 31])
@pytest.mark.parametrize("gaussian", [True, False])
def test_nu_is_the_noise_of_the_last_look(columns, neighbors, gaussian):
    size = columns + 1
    if gaussian:
        noise = located_gaussian(size, Fraction(1), Fraction(1, 16), Protection(neighbors))
    else:
        noise = located_matrix_laplace(size, Fraction(1, 2), Fraction(1, 4), Protection(neighbors))
    sd = noise.sd[:columns, :columns] * columns  # the stored rows are divided by R, R^2 = d
    nu = 2 * float(np.sqrt((sd**2).sum(axis=1).max()))
    assert rows_needed(columns, 0.25, neighbors, gaussian=gaussian) == pytest.approx(nu, rel=1e-6)


def test_no_columns_is_refused():
    with pytest.raises(ArgumentError, match="at least one column, got 0"):
        rows_needed(0, 1.0, "replace-one", gaussian=True)
