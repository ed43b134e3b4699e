"""What a step of a recorded call cost, held against its line of the budget table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oracles.recording import Draw, bounded_range_delta, gaussian_delta

NEAR = 1e-6


@dataclass(frozen=True)
class Cost:
    """What the draws of one step cost a person: pure losses in sequence, or one Gaussian ratio."""

    step: str
    draws: tuple[Draw, ...]
    losses: tuple[float, ...] = ()
    mu: float | None = None
    failure: float = 0.0
    tight: bool = True

    def check(self, spend: Any) -> None:
        """Hold it against the step's line of the budget table: no more, and nearly no less."""
        eps, delta = float(spend.eps), float(spend.delta)
        for draw in self.draws:
            assert draw.rows == spend.rows, f"{self.step} read {draw.rows}, charged {spend.rows}"
        if self.mu is not None:
            assert gaussian_delta(self.mu, eps) <= delta * (1 + NEAR), f"{self.step}: too little"
            if self.tight:
                assert gaussian_delta(1.3 * self.mu, eps) > delta, f"{self.step}: waste"
        elif delta > 0 and not self.failure:
            each, draws = max(self.losses), len(self.losses)
            assert bounded_range_delta(each, draws, eps) <= delta * (1 + NEAR), self.step
            assert bounded_range_delta(1.1 * each, draws, eps) > delta, f"{self.step}: waste"
        else:
            assert self.failure <= delta * (1 + NEAR), f"{self.step}: the bound fails too often"
            spent = sum(self.losses)
            assert spent <= eps * (1 + NEAR), f"{self.step} costs {spent}, charged {eps}"
            if self.tight:
                assert spent >= eps * 0.95, f"{self.step} costs {spent} of {eps}: waste"


@dataclass(frozen=True)
class Asked:
    """The part of a call that every cost depends on."""

    relation: str
    k: int
    options: dict[str, Any]

    @property
    def rows(self) -> int:
        """Losses that one contribution moves: of the old row and of the new."""
        return 2 if self.relation == "replace-one" else 1
