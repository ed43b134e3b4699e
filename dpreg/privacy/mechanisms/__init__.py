"""Mechanisms: the only code that draws the noise that privacy rests on."""

from dpreg.privacy.mechanisms.choice import (
    MECHANISMS,
    choose,
    effective_t,
    integer_laplace,
    noise_scale,
)
from dpreg.privacy.mechanisms.coins import assign_blocks, split_coins

__all__ = [
    "MECHANISMS",
    "assign_blocks",
    "choose",
    "effective_t",
    "integer_laplace",
    "noise_scale",
    "split_coins",
]
