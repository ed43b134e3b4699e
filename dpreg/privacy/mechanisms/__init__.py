"""Mechanisms: the only code that draws the noise that privacy rests on."""

from dpreg.privacy.mechanisms.choice import (
    MECHANISMS,
    choose,
    effective_t,
    integer_laplace,
    noise_scale,
)
from dpreg.privacy.mechanisms.coins import Coins, assign_blocks, groups_of_coins, secret_key

__all__ = [
    "MECHANISMS",
    "Coins",
    "assign_blocks",
    "choose",
    "effective_t",
    "groups_of_coins",
    "integer_laplace",
    "noise_scale",
    "secret_key",
]
