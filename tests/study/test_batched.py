"""The batched chances against the exact laws of `dpreg.selection.probabilities`."""

from fractions import Fraction

import numpy as np
import pytest

from dpreg.selection.probabilities import selection_probabilities
from dpreg.study.simulation import target_probability

BITS = 30  # scores on a grid this fine stand for real ones
TOLERANCE = {"laplace": 3e-5, "permute-and-flip": 1e-8, "exponential": 1e-8}


def _exact(scores, mechanism):
    grid = np.round(scores * 2**BITS).astype(np.int64)
    return np.array(
        [selection_probabilities(row, Fraction(1, 2**BITS), mechanism)[0] for row in grid]
    )


@pytest.mark.parametrize("mechanism", TOLERANCE)
@pytest.mark.parametrize("models", [1, 2, 7, 64])
@pytest.mark.parametrize("spread", [0.05, 1.0, 5.0, 50.0])
def test_chances_are_those_of_the_exact_laws(mechanism, models, spread):
    rng = np.random.default_rng([models, int(spread * 100)])
    scores = rng.exponential(spread, size=(40, models))
    scores[:20, 0] = scores[:20].min(axis=1)  # as it is where the target is the best model
    scores[5:15, models // 2] = scores[5:15, 0]  # ties
    found = target_probability(scores - scores[:, :1], mechanism)
    np.testing.assert_allclose(found, _exact(scores, mechanism), atol=TOLERANCE[mechanism], rtol=0)


@pytest.mark.parametrize("mechanism", TOLERANCE)
def test_hopeless_targets_have_no_chance_and_raise_nothing(mechanism):
    gaps = np.array([[0.0, -1e6, 3.0], [0.0, 1e6, 1e9]])
    np.testing.assert_allclose(target_probability(gaps, mechanism), [0, 1], atol=3e-5)
