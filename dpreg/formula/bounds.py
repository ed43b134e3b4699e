"""Bounds that the schema leaves out: bought column by column, before the design is built."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dpreg.arrays import Floats, Ints
from dpreg.columns import Numeric, Unbounded
from dpreg.errors import SchemaError
from dpreg.privacy.budget import Budget, decimal_string
from dpreg.privacy.ranks import PASSES, RELIABLE, BoundsSearch
from dpreg.running import warn
from dpreg.schema import Schema
from dpreg.sources import Chunk, Integers
from dpreg.sources.reader import Reader

if TYPE_CHECKING:
    from dpreg.privacy.account import Account, Part

_Built = TypeVar("_Built")

_FARTHEST = 2.0**150
_NARROWEST = 2.0**-60
_STAND_INS = (
    Numeric(-_FARTHEST, _FARTHEST),
    Numeric(_FARTHEST / 2, _FARTHEST),
    Numeric(1.0, 2.0),
    Numeric(-2.0, -1.0),
    Numeric(-_NARROWEST, _NARROWEST),
)
"""Stand for bounds that are not known yet, to try formula and schema before anything is spent: a
factor that fails under one of them (a logarithm, a comparison that the bounds decide, a power that
overflows) is refused then. Bought bounds are kept within what these span."""


def _counted(
    counting: Mapping[str, Callable[[Floats], Ints]], chunks: Iterable[tuple[int, Chunk]]
) -> Integers:
    """Add up what each column's search wants counted; see `dpreg.sources.base.Tally`."""
    counted = {name: count(np.empty(0)) for name, count in counting.items()}
    for _, chunk in chunks:
        for name, count in counting.items():
            counted[name] += count(chunk[name])
    return np.concatenate(list(counted.values()))


def open_bounds(account: Account, names: Sequence[str], share: Fraction) -> Mapping[str, Part]:
    """Open a line for the bounds of each column, which take a share of the call's eps together."""
    each = Budget(account.budget.eps * share / max(len(names), 1))
    return {name: account.line(f"bounds of {name}", "private choices", each) for name in names}


def announce(parts: Mapping[str, Part]) -> None:
    """Warn, before the charge, of all columns that nobody declared: what is done, what it costs.

    It says the same whatever the columns hold, and however many rows there are.

    Parameters
    ----------
    parts : mapping of str to Part
        From `open_bounds`.
    """
    if not parts:
        return
    eps = sum((part.cost.eps for part in parts.values()), Fraction(0))
    contributions = next(iter(parts.values())).protection.contributions
    rows = math.ceil(RELIABLE * len(parts) * contributions / eps)
    warn(
        f"the schema leaves out {', '.join(parts)}: they are read as numbers, other cells "
        f"are missing, and their bounds are bought with eps = {decimal_string(eps)} of this call. "
        f"Such bounds may be poor for fewer than {rows:,} rows. Declare columns in the schema: "
        "bounds, levels or bool, from public knowledge."
    )


def buy_bounds(reader: Reader, schema: Schema, parts: Mapping[str, Part]) -> Schema:
    """Return the schema with private bounds for the columns that have a part of the budget.

    `PASSES` passes over the rows, however many columns there are.

    Parameters
    ----------
    reader : Reader
    schema : Schema
        What is declared.
    parts : mapping of str to Part
        From `open_bounds`: each column's bounds are a release of their own
        (`dpreg.privacy.ranks`), and they compose in sequence.
    """
    if not parts:
        return schema
    names = tuple(parts)
    searches = {name: BoundsSearch(part) for name, part in parts.items()}
    for step in range(PASSES):
        counting = {name: search.counting for name, search in searches.items()}
        sizes = [len(count(np.empty(0))) for count in counting.values()]
        counted = reader.total(
            dict.fromkeys(names, Unbounded()),
            partial(_counted, counting),
            f"bounds, pass {step + 1} of {PASSES}",
        )
        counts = np.split(counted.astype(object), np.cumsum(sizes)[:-1])
        for search, count in zip(searches.values(), counts, strict=True):
            search.learn(count)
    bought = {name: _kept_within(*search.bounds) for name, search in searches.items()}
    return Schema({**schema, **bought})


def with_stand_ins(
    build: Callable[[Schema], _Built], schema: Schema, names: Sequence[str]
) -> _Built:
    """Try a design before the bounds of `names` are bought: what fails then is refused now.

    Raises
    ------
    SchemaError
        Where a factor needs to know more of a column than that it is a number (the logarithm of
        one without declared bounds, say).
    """
    if not names:
        return build(schema)
    try:
        built = [build(Schema({**schema, **dict.fromkeys(names, s)})) for s in _STAND_INS]
    except SchemaError as err:
        raise SchemaError(
            f"{err} The schema holds no bounds for {', '.join(names)}: declare those of the "
            "columns in this factor, since bounds estimated privately need not be legal there."
        ) from None
    return built[0]


def _kept_within(lo: float, hi: float) -> Numeric:
    """Keep bought bounds within +-2**150 and at least 2**-59, or 2**-20 of their size, apart."""
    lo, hi = max(lo, -_FARTHEST), min(hi, _FARTHEST)
    middle = min(max(lo / 2 + hi / 2, -_FARTHEST), _FARTHEST)
    half = max(_NARROWEST, abs(middle) * 2.0**-20, hi / 2 - lo / 2)
    return Numeric(middle - half, middle + half)
