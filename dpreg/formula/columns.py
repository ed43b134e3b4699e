"""Columns and terms of a design, and the rule that scales a column into [-1, 1].

Every rule here reads public facts only: intervals and codings, never rows.

Tested in `tests/formula/test_design.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpreg.errors import ArgumentError, SchemaError, did_you_mean, shown
from dpreg.formula.intervals import Interval

__all__ = ["INTERCEPT", "Column", "Term", "resolve_keep", "scaled_column", "scaled_response"]

INTERCEPT = "Intercept"
"""Name of the constant term, as patsy spells it."""

_LARGEST = 2.0**500


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the row vector z: its name, bounds and scale.

    Attributes
    ----------
    name : str
        patsy's name, such as ``county[T.cc]``.
    term : str
        Name of the term it belongs to.
    lo, hi : float
        Public bounds of the column in its own units.
    offset, width : float
        stored = clip((raw - offset) / width, -1, 1). The response's width includes the clip c, so
        its stored value is y / c.
    levels : bool
        Whether it is made of factors of levels alone: it has no other values than its codes.
    """

    name: str
    term: str
    lo: float
    hi: float
    offset: float
    width: float
    levels: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the formula.

    Attributes
    ----------
    name : str
        patsy's name, such as ``a:b``.
    columns : tuple of int
        Its indices into z; the intercept's is (0,).
    factors : tuple of str
        Names of its factors; none for the intercept. A term belongs below another under strong
        hierarchy when its factors are a subset of the other's.
    exclusive : bool
        True where its columns, two or more, are stored as 0/1 and at most one of them is not zero
        on any row.
    """

    name: str
    columns: tuple[int, ...]
    factors: tuple[str, ...]
    exclusive: bool


def scaled_column(
    name: str, term: str, interval: Interval, *, centered: bool, indicator: bool
) -> Column:
    """Scale a column by its bounds.

    With the intercept kept (`centered`) the bounds [lo, hi] go to [-1, 1], so a column of two
    values goes to -1 and +1. A column made of categorical factors alone, one of which has three
    levels or more (`indicator`), stays as it is coded, 0/1 under treatment coding: it is divided
    by its largest modulus, 1. Everything else, a product of a level and a number too, follows the
    rule of its interval. Without the intercept every column is only divided: a model without the
    intercept could not take up a shift.

    Raises
    ------
    SchemaError
        If the column has no width.
    """
    if centered and not indicator:
        offset, width = interval.lo / 2 + interval.hi / 2, interval.hi / 2 - interval.lo / 2
    else:
        offset, width = 0.0, max(abs(interval.lo), abs(interval.hi))
    if not width > 0:
        raise SchemaError(
            f"column {shown(name)} has no width under the declared bounds: widen the bounds of "
            f"the columns in it, or leave it out."
        )
    return Column(name, term, interval.lo, interval.hi, offset, width)


def scaled_response(name: str, interval: Interval, *, clip: Fraction, center: bool) -> Column:
    """Scale the response by its bounds, its clip included in the width.

    Raises
    ------
    SchemaError
        If it has no width, or its square could leave float64.
    """
    column = scaled_column(name, name, interval, centered=center, indicator=False)
    width = float(Fraction(column.width) * clip)
    if not width > 0:
        raise SchemaError(
            f"response {shown(name)} times the clip has no width in float64: widen its bounds."
        )
    if not 1 / _LARGEST <= width <= _LARGEST:
        raise SchemaError(
            f"response {shown(name)}: half the width of its bounds must lie between 2**-500 and "
            "2**500, since variances are squares of it: give it in another unit."
        )
    return Column(name, name, column.lo, column.hi, column.offset, width)


def resolve_keep(terms: Sequence[Term], keep: Iterable[str]) -> tuple[str, ...]:
    """Find the terms that are kept in every model.

    Parameters
    ----------
    terms : sequence of Term
    keep : iterable of str
        Names of terms; the factors of an interaction may stand in any order. "Intercept" is passed
        over where the formula has no intercept, since it is the default.

    Returns
    -------
    tuple of str
        Their names, in the order of `terms`.

    Raises
    ------
    ArgumentError
        If a name is not a term of the formula; the message lists those that are.
    """
    if isinstance(keep, str):
        raise ArgumentError(f"keep must be a tuple of term names, such as ({shown(keep)},).")
    wanted = tuple(keep)
    by_name = {term.name: term.name for term in terms}
    by_factors = {frozenset(term.factors): term.name for term in terms if term.factors}
    found = set()
    for name in wanted:
        if not isinstance(name, str):
            raise ArgumentError("keep must hold names of terms, as text.")
        known = by_name.get(name) or by_factors.get(frozenset(name.split(":")))
        if known is not None:
            found.add(known)
        elif name != INTERCEPT:
            listed = f"; the terms are {', '.join(shown(term.name) for term in terms)}."
            near = did_you_mean(name, by_name, listed)
            raise ArgumentError(f"keep: {shown(name)} is not a term{near}")
    return tuple(term.name for term in terms if term.name in found)
