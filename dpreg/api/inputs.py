"""What the classic calls share: their checked choices, and columns with public bounds.

Everything here is settled from public facts, before a ledger is charged or a row is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.api.context import check_known_rows, open_table
from dpreg.columns import Boolean, Categorical, ColumnType, Numeric
from dpreg.errors import ArgumentError, SchemaError, did_you_mean, shown
from dpreg.estimation.histogram import count_noise
from dpreg.estimation.sums import Estimate
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.noise import VECTOR_NOISES, VectorNoise
from dpreg.request import Arguments, Request, checked, choice, optional, positive, truth
from dpreg.results.claim import PrivacyClaim
from dpreg.schema import Schema
from dpreg.sources import Chunk, Integers, Source, as_source
from dpreg.sources.reader import Reader

Pair = tuple[float, float]

Grouped: TypeAlias = Iterator[tuple[Chunk, NDArray[np.int64]]]
"""Chunks of rows, and each row's group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices(Request):
    """What every classic call lets its caller choose, as exact values."""

    noise: str | None = checked(optional, choice, VECTOR_NOISES)

    def fields(
        self, account: Account, by: str | None, groups: tuple[str, ...], rows: int, noise: str
    ) -> dict[str, Any]:
        """Return the fields that results of every classic call have, once all is drawn."""
        return {
            "by": by,
            "groups": groups,
            "nobs": rows if self.protection.n_is_public else None,
            "noise": noise,
            "eps": self.budget.eps,
            "delta": self.budget.delta,
            "claim": PrivacyClaim.of(account),
        }


@dataclass(frozen=True, slots=True)
class Bought:
    """Noise on a vector of integers, and the part of the budget that pays for it."""

    noise: VectorNoise
    part: Part

    @classmethod
    def counts(
        cls,
        account: Account,
        step: str,
        cells: int,
        cost: Budget,
        noise: str | None = "laplace",
        *,
        single: bool = False,
    ) -> Bought:
        """Fit noise to some counts, and open its line."""
        who = account.protection
        fitted = count_noise(cells, cost=cost, protection=who, noise=noise, single=single)
        return cls(fitted, account.line(step, f"discrete {fitted.mechanism}", fitted.cost))


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a source with public bounds, and the column that groups the rows, if any.

    Attributes
    ----------
    choices : Choices
    reader : Reader
    names : tuple of str
    how : mapping of str to ColumnType
        How each column is read, the grouping one included.
    bounds : mapping of str to (lo, hi)
        Of `names` that are numbers, in their order.
    by : str or None
    groups : tuple of str
        Levels of `by` as text.
    complete : bool
        The caller's word that no value is missing: the count is n.
    """

    choices: Choices
    reader: Reader
    names: tuple[str, ...]
    how: Mapping[str, ColumnType]
    bounds: Mapping[str, Pair]
    by: str | None
    groups: tuple[str, ...]
    complete: bool

    @property
    def lines(self) -> int:
        """Number of groups; 1 without `by`."""
        return max(len(self.groups), 1)

    @property
    def public_rows(self) -> int | None:
        """Number of rows, where it is public."""
        return self.reader.rows if self.choices.protection.n_is_public else None

    def fields(self, account: Account, noise: str) -> dict[str, Any]:
        """Return the fields that results of every call of columns have, once all is drawn."""
        told = self.choices.fields(account, self.by, self.groups, self.reader.rows, noise)
        return told | {"passes": self.reader.passes}

    def total(self, count: Callable[[Grouped], Integers], what: str) -> Integers:
        """Make one pass; `count` sees rows with their groups, and is pickled as a tally is."""
        rows, *counted = self.reader.total(self.how, partial(_grouped, self.by, count), what)
        self.reader.counted = int(rows)
        return np.array(counted, dtype=object)


def _grouped(
    by: str | None, count: Callable[[Grouped], Integers], chunks: Iterable[tuple[int, Chunk]]
) -> Integers:
    """Count rows with their groups, -1 for none, 0 without grouping; all rows come first."""
    rows = 0

    def grouped() -> Grouped:
        nonlocal rows
        for _, chunk in chunks:
            length = len(next(iter(chunk.values())))
            rows += length
            labels = np.zeros(length, dtype=np.int64) if by is None else group_codes(chunk[by])
            yield chunk, labels

    counted = count(grouped())
    return np.concatenate([np.array([rows], dtype=object), counted])


def columns_of(call: Arguments, choices: Choices, *, levels_allowed: bool = False) -> Columns:
    """Settle, from public facts, the columns of a call, their bounds and groups; read no row.

    Parameters
    ----------
    call : mapping
        Its arguments x, data, bounds, schema, where, by, complete and progress.
    choices : Choices
    levels_allowed : bool
        Whether a column may be categorical.
    """
    x, data, bounds, by = (call[name] for name in ("x", "data", "bounds", "by"))
    if by is not None and not isinstance(by, str):
        raise ArgumentError("by must be the name of a column of the data.")
    source, names = _table(x, data, by, choices.protection.person)
    if len(set(names)) < len(names):
        raise ArgumentError("the columns must be different: name each once.")
    if by in names:
        raise ArgumentError(f"by={shown(by)} is one of the columns itself: leave it out of one.")
    if isinstance(bounds, Mapping) and (strange := [n for n in bounds if n not in names]):
        near = did_you_mean(strange[0], names, f" ({', '.join(names)}).")
        raise ArgumentError(
            f"bounds names {shown(strange[0])}, which is not a column of this call{near}"
        )
    reader, declared = open_table(choices, call, source)
    how = {name: _declared(name, bounds, declared, levels_allowed) for name in names}
    pairs = {
        name: (one.lo, one.hi) if isinstance(one, Numeric) else (0.0, 1.0)
        for name, one in how.items()
        if not isinstance(one, Categorical)
    }
    groups: tuple[str, ...] = ()
    if by is not None:
        how[by], groups = grouping(by, declared)
    reader.settle(how)
    public, complete = choices.protection.n_is_public, call["complete"]
    check_known_rows(reader, public)
    if truth(complete, "complete") and not public:
        raise ArgumentError(
            'complete=True needs neighbors="replace-one" without person, where n is public.'
        )
    other = "by" if by is not None else "where"
    if complete and (other == "by" or reader.where is not None):
        raise ArgumentError(
            f"complete=True and {other} cannot be used together: a group's size is private."
        )
    return Columns(choices, reader, names, how, pairs, by, groups, complete)


def _table(x: Any, data: Any, by: str | None, person: str | None) -> tuple[Source, tuple[str, ...]]:
    if data is not None:
        names = (x,) if isinstance(x, str) else x
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            raise ArgumentError("with data, x must be a column's name or a list of names.")
        if not names:
            raise ArgumentError("x names no column.")
        return as_source(data), tuple(names)
    if isinstance(x, str):
        raise ArgumentError(f"x={shown(x)} names a column: give the table as the second argument.")
    if isinstance(x, pd.Series | pd.Index):
        name = x.name if isinstance(x.name, str) else "x"
        source = as_source({name: x})
    elif isinstance(x, np.ndarray) and x.ndim == 2:
        source = as_source({f"x{j}": np.ascontiguousarray(x[:, j]) for j in range(x.shape[1])})
    elif isinstance(x, np.ndarray | list | tuple | pd.api.extensions.ExtensionArray):
        source = as_source({"x": x})
    else:
        try:
            source = as_source(x)
        except ArgumentError:
            raise ArgumentError(
                f"x is a {type(x).__name__}: give an array, a Series, a table, or a column's name "
                "and the table."
            ) from None
    names = tuple(name for name in source.names if name not in (by, person))
    if not names:
        raise ArgumentError("x holds no column.")
    return source, names


def _declared(name: str, bounds: Any, schema: Schema, levels_allowed: bool) -> ColumnType:
    given = bounds.get(name) if isinstance(bounds, Mapping) else bounds
    if given is not None:
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
            raise ArgumentError(
                "bounds must be (lowest, highest), or a mapping of column names to such pairs."
            )
        try:
            return Numeric(*given)
        except SchemaError as err:
            raise ArgumentError(f"bounds of {shown(name)}: {err}") from None
    found = schema.get(name)
    if isinstance(found, Numeric | Boolean):
        return found
    if isinstance(found, Categorical):
        if levels_allowed:
            return found
        raise ArgumentError(f"column {shown(name)} holds labels: only dp_histogram takes it.")
    raise ArgumentError(
        f"column {shown(name)} has no bounds: give bounds=(lowest, highest) or declare them in "
        "schema. They must be public knowledge, not taken from the rows."
    )


def group_codes(codes: NDArray[Any]) -> NDArray[np.int64]:
    """Return groups as integers: codes of levels, or truths; -1 where there is none."""
    return np.where(np.isnan(codes), -1, codes).astype(np.int64)


def level_names(how: ColumnType) -> tuple[str, ...]:
    """Return the levels of a column as text; none of numbers."""
    if isinstance(how, Categorical):
        return tuple(map(str, how.levels))
    return ("False", "True") if isinstance(how, Boolean) else ()


def grouping(by: str, schema: Schema) -> tuple[ColumnType, tuple[str, ...]]:
    """Return how a grouping column is read, and its levels as text."""
    found = schema.get(by)
    if found is not None and (names := level_names(found)):
        return found, names
    told = shown(by)
    raise ArgumentError(
        f'by={told} needs declared levels: add {told}: ["level", ...] to schema. Levels taken '
        "from the rows would not be private."
    )


def fraction_of(value: object, name: str) -> Fraction:
    """Return a share strictly between 0 and 1, exactly."""
    share = positive(value, name)
    if share >= 1:
        # The value may be a cell: someone may hand over the rows in this place.
        raise ArgumentError(f"{name} must lie between 0 and 1.")
    return share


def estimate_fields(
    estimates: Sequence[Estimate], bounds: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """Return the fields that estimates have."""
    return {
        "estimates": np.array([one.value for one in estimates]),
        "sampling_errors": np.array([one.sampling for one in estimates]),
        "privacy_errors": np.array([one.privacy for one in estimates]),
        "bounds": {name: np.array(pair) for name, pair in bounds.items()},
    }
