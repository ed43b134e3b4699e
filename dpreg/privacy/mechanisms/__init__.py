"""Mechanisms: the only code that draws the noise that privacy rests on."""

from dpreg.privacy.mechanisms.choice import (
    MECHANISMS,
    choose,
    draw_index,
    effective_t,
    noise_scale,
)
from dpreg.privacy.mechanisms.coins import (
    Coins,
    assign_blocks,
    block_seeds,
    groups_of_coins,
    secret_key,
)

__all__ = [
    "MECHANISMS",
    "Coins",
    "assign_blocks",
    "block_seeds",
    "choose",
    "draw_index",
    "effective_t",
    "groups_of_coins",
    "noise_scale",
    "secret_key",
]
