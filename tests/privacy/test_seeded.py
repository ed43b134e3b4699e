from fractions import Fraction

import numpy as np
import pytest

from dpreg.privacy.mechanisms.choice import choose
from dpreg.privacy.protection import CHOICES
from dpreg.privacy.seeded import NOT_PRIVATE


def test_the_stamp_says_what_it_must():
    assert NOT_PRIVATE == "NOT PRIVATE: seeded"


@pytest.mark.parametrize("mechanism", CHOICES)
def test_a_seed_repeats_the_draws(mechanism):
    scores = np.arange(50, dtype=np.int64)

    def draws():
        rng = np.random.default_rng(7)
        arguments = {"eps": Fraction(1), "score_range": 20, "mechanism": mechanism, "rng": rng}
        return [choose(scores, **arguments) for _ in range(20)]

    assert draws() == draws()
    assert len(set(draws())) > 1
