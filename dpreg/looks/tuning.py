"""Every number of this room that follows from no definition, proof or precision, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """What looks are tuned by."""

    box: float = 0.08
    early: tuple[float, ...] = (0.06, 0.06, 0.06)
    box_pure: float = 0.15
    locating_pure: tuple[float, ...] = (0.20, 0.30)
    middle_pure: float = 0.10
    tail: float = 0.02
    tail_pure: float = 0.06
    heavy: float = 0.3
    information: float = 0.12
    information_early: float = 0.35
    loud: float = 0.15
    limit: float = 0.6
    least_limit: float = 1.25
    radius: float = 1.4
    residual: float = 2.5
    allowance: float = 0.21
    moved: float = 0.1
    hidden: float = 0.3
    settled: float = 0.5
    box_noise: float = 1.2
    gap: float = 2.0
    least_gap: float = 0.01
    sure: float = 0.7
    longest: float = 2.0
    least_count: float = 0.3
    least_phi: float = 0.3
    sandwich: float = 0.25
    prior: float = 16.0
    nearer: float = 16.0
    most_prior: float = 0.5
    wide: float = 0.8


TUNING = Tuning()
"""Chosen on the tuning half of `benchmarks.holds`."""
