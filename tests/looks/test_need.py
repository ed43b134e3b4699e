"""The rows that looks need, against the noise of a look at full resolution."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpreg.looks.plan import plan_looks
from dpreg.privacy.budget import Budget
from dpreg.privacy.look_noise import located_gaussian, located_matrix_laplace
from dpreg.privacy.protection import Protection


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("columns", [2, 9, 31])
@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("contributions", [1, 4])
def test_nu_is_the_noise_of_the_last_look(columns, neighbors, gaussian, contributions):
    size, who = columns + 1, Protection(neighbors, contributions)
    if gaussian:
        noise = located_gaussian(size, Fraction(1), Fraction(1, 16), who)
    else:
        noise = located_matrix_laplace(size, Fraction(1, 2), Fraction(1, 4), who)
    sd = noise.sd[:columns, :columns] * columns  # the stored rows are divided by R, R^2 = d
    nu = 2 * float(np.sqrt((sd**2).sum(axis=1).max()))
    plan = plan_looks(columns - 1, Budget(1, "1e-6" if gaussian else 0), who)
    last = 1 - sum(plan.shares(curved=False))
    plan = replace(plan, strength=(Fraction(1, 16) if gaussian else Fraction(1, 4)) / last)
    assert plan.rows_needed == pytest.approx(nu, rel=1e-6)
