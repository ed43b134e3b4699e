"""Bounds that the schema leaves out: bought column by column, before the design is built."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpreg.errors import DpregWarning, SchemaError
from dpreg.privacy.quantiles import RELIABLE, estimate_bounds, reliable
from dpreg.schema import Numeric, Schema, Unbounded
from dpreg.sources import Source

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["buy_bounds", "warn_of_poor_bounds", "with_stand_ins"]

_Built = TypeVar("_Built")

_STAND_IN = Numeric(-1e6, 1e6)
"""Stands for bounds that are not known yet, to try formula and schema before anything is spent."""

_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class _Values:
    """One column of a source, to be gone through as often as is asked."""

    source: Source
    name: str

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        for chunk in self.source.chunks({self.name: Unbounded()}, _ROWS_AT_ONCE):
            yield chunk[self.name]


def buy_bounds(
    source: Source,
    schema: Schema,
    names: Sequence[str],
    *,
    eps: Fraction,
    neighbors: str,
    contributions: int,
    rng: Generator | None = None,
) -> Schema:
    """Return the schema with private bounds for `names`; costs eps, in equal parts.

    Parameters
    ----------
    source : Source
    schema : Schema
        What is declared.
    names : sequence of str
        Numeric columns that are not.
    eps : Fraction
        For all of them together: each column's bounds are a release of their own
        (`dpreg.privacy.quantiles`), and they compose in sequence.
    """
    bought = {}
    for name in names:
        lo, hi = estimate_bounds(
            _Values(source, name), eps / len(names), neighbors, contributions, rng
        )
        bought[name] = Numeric(lo, hi)
    return Schema({**schema, **bought}) if bought else schema


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
        return build(Schema({**schema, **dict.fromkeys(names, _STAND_IN)}))
    except SchemaError as err:
        raise SchemaError(
            f"{err} The schema holds no bounds for {', '.join(names)}: declare those of the "
            "columns in this factor, since bounds estimated privately need not be legal there."
        ) from None


def warn_of_poor_bounds(
    names: Sequence[str], rows: int | None, eps: Fraction, contributions: int
) -> None:
    """Warn, from public facts alone, where rows times eps are too few for good bounds."""
    if not names or reliable(rows, eps, len(names), contributions):
        return
    if rows is None:
        known = "the number of rows is private"
    else:
        known = f"it is {float(rows * eps / (len(names) * contributions)):,.0f}"
    warnings.warn(
        f"bounds of {', '.join(names)} are estimated privately and may be poor: rows times the eps "
        f"of each column's bounds should be {RELIABLE:,} or more, and {known}. Declare bounds in "
        "the schema where they are public knowledge, or raise eps or shares['bounds'].",
        DpregWarning,
        stacklevel=4,
    )
