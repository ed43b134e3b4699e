"""The steps of `sample_aggregate` except the estimator: check, charge, draw the blocks, release.

Whoever runs the estimator sends the blocks' values in between: `dpreg.api.aggregate` for Python,
and the R package for functions of R, which must not run inside a call of Python's.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.api.block_table import BlockTable
from dpreg.api.inputs import Choices, open_noise
from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.estimation import blocks as aggregate
from dpreg.estimation.blocks import AGGREGATES, Limits, limits_of
from dpreg.estimation.histogram import count_noise
from dpreg.estimation.sums import Estimate
from dpreg.privacy.account import Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.mechanisms.coins import block_seeds
from dpreg.privacy.noise import VectorNoise
from dpreg.request import choice, count, positive
from dpreg.results.claim import PrivacyClaim
from dpreg.results.classic import ClassicResults

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["Aggregate", "Blocks"]

Indices = NDArray[np.intp]

_COUNT_SHARE: Final = Fraction(1, 50)
"""The part of eps that buys the number of rows for the number of blocks, where it is private."""

_MOST_BLOCKS: Final = 10**7
_MOST_DOUBT: Final = 10**6
"""Standard error, in rows, of the noisy number of rows beyond which it says too little."""
_DOUBT: Final = 4
"""Standard errors of the number of rows below which it may be next to nothing."""

_LONGEST: Final = Fraction(10**6)
"""Seconds of a time limit: waiting for a process counts in milliseconds, in 31 bits."""

_BIAS: Final = (
    "Intervals do not account for bias that remains in the blocks' estimates. A block on which the "
    "estimator fails counts as the midpoint of the bounds."
)
_NEAR: Final = 4.0
"""Standard errors from the midpoint within which an aggregate lies at it."""
_AT_MIDPOINT: Final = 1e-5
"""Or this part of half the bounds' width: so far a window about it reaches."""
_NO_SPREAD: Final = 1e-3
"""Spread of block values, as a part of half the bounds' width, that is next to nothing."""


_DEFAULTS: Final[Mapping[str, Any]] = {
    "delta": 0,
    "blocks": None,
    "correct_bias": True,
    "aggregation": "auto",
    "neighbors": "replace-one",
    "contributions": 1,
    "person": None,
    "timeout": None,
    "noise": None,
    "unsafe_seed": None,
}


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of one group, or of all rows, whose values are wanted.

    Attributes
    ----------
    rows : list of B index arrays
    seeds : list of B int
        Of the random numbers of each block's estimator.
    """

    rows: list[Indices]
    seeds: list[int]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What a call asks for, except the estimator and the rows.

    Attributes
    ----------
    choices : Choices
    names : tuple of str
        Of the d numbers that the estimator returns.
    limits : Limits
    way : str
        One of `AGGREGATES`.
    blocks : int or None
    correct_bias : bool
    timeout : float or None
        Seconds for all that is done with one block.
    """

    choices: Choices
    names: tuple[str, ...]
    limits: Limits
    way: str
    blocks: int | None
    correct_bias: bool
    timeout: float | None

    @classmethod
    def of(cls, call: Mapping[str, Any]) -> Aggregate:
        """Check the arguments of `sample_aggregate`; what is left out has its default."""
        call = {**_DEFAULTS, **call}
        choices, correct_bias = Choices.of(call), call["correct_bias"]
        if not isinstance(correct_bias, bool):
            raise ArgumentError("correct_bias must be True or False.")
        way = str(choice(call["aggregation"], "aggregation", AGGREGATES))
        names, limits = limits_of(call["bounds"])
        blocks = call["blocks"]
        given = None if blocks is None else count(blocks, "blocks")
        if given is not None and given > _MOST_BLOCKS:
            raise ArgumentError(f"blocks must be at most {_MOST_BLOCKS:,}.")
        timeout = call["timeout"]
        seconds = None if timeout is None else float(positive(timeout, "timeout", _LONGEST))
        return cls(choices, names, limits, way, given, correct_bias, seconds)

    def steps(
        self, table: BlockTable, budget: Ledger | None
    ) -> Generator[Blocks, Floats, ClassicResults]:
        """Run the call, except the estimator, which the caller runs.

        The first `next` charges the ledger, and only then is a row read or noise drawn; nor are
        the rows counted before, unless their number is public and `blocks` is given.

        Parameters
        ----------
        table : BlockTable
        budget : Ledger or None

        Yields
        ------
        Blocks
            What must be sent back is the value of each block, (B, d), within `limits`: a function
            of the block's rows and of its seed alone.

        Returns
        -------
        ClassicResults

        Raises
        ------
        ArgumentError, BudgetError
            Before the charge, except where `blocks` are too many for a stream, whose (public)
            number of rows is known only once it has been read.
        """
        choices = self.choices
        groups, lines = table.groups, table.groups.lines
        if choices.protection.person is not None and not table.by_person:
            raise ArgumentError(
                "person needs a table whose rows dpreg reads itself: leave it out here, and say by "
                "contributions how many rows one person may own."
            )
        changes = aggregate.block_changes(choices.protection, lines, grouped=bool(groups.levels))
        whole, account = choices.budget.eps, choices.account()
        counting = None
        if self.blocks is None and not choices.n_is_public:
            counting = count_noise(
                1,
                cost=Budget(whole * _COUNT_SHARE),
                protection=choices.protection,
                noise="laplace",
                single=True,
            )
            _check_count(counting)
            counted = open_noise(account, "number of rows", counting)
        most = Budget(whole - account.total.eps, choices.budget.delta)
        public = aggregate.Averaging.planned(
            len(self.names), lines, most, changes, choices.noise
        ).noise
        if self.way == "winsorized":
            aggregate.check_window(len(self.names), changes, most.eps)
        if self.blocks is not None and choices.n_is_public:
            self._check_blocks(table.count(), lines)
        average = account.joint(
            "average over blocks", f"discrete {public.mechanism}", Budget(most.eps, public.delta)
        )
        account.charge(budget, "sample_aggregate")
        # How eps is divided among the steps may follow the released number of rows.
        rows = table.read()
        if choices.n_is_public:
            self._check_blocks(rows, lines)
        each = whole / (len(self.names) * changes.after.contributions)
        known = rows + (0 if counting is None else counting.draw(1, counted)[0])
        size = self.blocks or aggregate.default_blocks(max(known, 1) // lines, each)
        size = min(size, _MOST_BLOCKS)  # noise has no largest value
        windows: tuple[Part, ...] | None = None
        if self.way == "winsorized" or (self.way == "auto" and aggregate.window_pays(size, each)):
            share = Budget(whole * aggregate.window_share(size, each))
            part = account.release(average, "window of block values", "permute-and-flip", share)
            windows = part.across(lines)
        averaging = aggregate.Averaging.planned(
            len(self.names), lines, average.left, changes, public.mechanism
        )
        averages = average.rest().across(lines)
        labels, coins = table.labels(), table.coins()
        estimates: list[Estimate] = []
        for line in range(lines):
            members = np.flatnonzero(labels == line)
            mine = None if coins is None else coins[members]
            parts = aggregate.draw_blocks(members.size, size, account.rng, mine)
            seeds = block_seeds(size, rng=account.rng)
            values = yield Blocks([members[part] for part in parts], seeds)
            within = self.limits
            if windows is not None:
                within = aggregate.window(values, self.limits, part=windows[line], changes=changes)
            estimates += averaging.release(within.clip(values), within, averages[line])
        return ClassicResults(
            statistic="sample and aggregate",
            names=self.names,
            by=groups.name,
            groups=groups.levels,
            estimates=np.array([one.value for one in estimates]),
            sampling_errors=np.array([one.sampling for one in estimates]),
            privacy_errors=np.array([one.privacy for one in estimates]),
            nobs=rows if choices.n_is_public else None,
            passes=table.passes,
            blocks=size,
            bounds={
                name: np.array(pair)
                for name, *pair in zip(
                    self.names, self.limits.lower, self.limits.upper, strict=True
                )
            },
            noise=averaging.noise.mechanism,
            eps=choices.budget.eps,
            delta=choices.budget.delta,
            claim=PrivacyClaim.of(account),
            notes=(
                *self._failing(estimates, size),
                _BIAS,
                *self._empty_blocks(bool(groups.levels) or table.tested, known, counting),
            ),
        )

    def _failing(self, estimates: list[Estimate], size: int) -> tuple[str, ...]:
        """Say, from released numbers, which aggregates look as if blocks were all midpoints."""
        limits, found = self.limits, []
        middles = zip(cycle(self.names), cycle(limits.midpoint), cycle(limits.upper), strict=False)
        for one, (name, middle, upper) in zip(estimates, middles, strict=False):
            half, error = upper - middle, math.hypot(one.sampling, one.privacy)
            spread = max(one.sampling * math.sqrt(size), error)
            near = max(_NEAR * error, _AT_MIDPOINT * half)
            if spread <= _NO_SPREAD * half and abs(one.value - middle) <= near:
                found.append(name)
        if not found:
            return ()
        return (
            f"All or most blocks seem to count as the midpoint of the bounds of "
            f"{', '.join(dict.fromkeys(found))}: does the estimator fail? Try it on made-up rows.",
        )

    def _check_blocks(self, rows: int | None, lines: int) -> None:
        """Refuse, where n is public, more blocks than have two rows each on average."""
        if self.blocks is None or rows is None or self.blocks * lines <= rows // 2:
            return
        each = f" in each of {lines} groups" if lines > 1 else ""
        raise ArgumentError(
            f"blocks={self.blocks}{each} are too many for {rows} rows: with fewer than two rows to "
            "a block many are empty, and an empty block counts as the midpoint of the bounds. Ask "
            "for far fewer, or leave blocks out."
        )

    def _empty_blocks(
        self, grouped: bool, known: int, counting: VectorNoise | None
    ) -> tuple[str, ...]:
        """Say, from arguments and the released number of rows, that blocks may be empty."""
        if self.choices.n_is_public:
            doubtful = False
        elif counting is None:
            doubtful = True
        else:
            doubtful = known < _DOUBT * math.sqrt(counting.variance)
        if not (grouped or doubtful):
            return ()
        where = "in a group of few rows" if grouped else "unless rows are many times the blocks"
        return (
            "A block without rows counts as the midpoint of the bounds, which intervals do not "
            f"account for: they are wrong {where}.",
        )


def _check_count(counting: VectorNoise) -> None:
    """Refuse, from public facts, a number of rows that is little but noise: so would the blocks be.

    A table of a hundred rows would be cut into as many blocks as the noise happens to ask for.
    """
    error = math.sqrt(counting.variance)
    if error > _MOST_DOUBT:
        raise ArgumentError(
            "eps is too small to buy the number of rows, from which the number of blocks follows: "
            f"its noise would be about {error:,.0f} rows. Give blocks, or a larger eps."
        )
