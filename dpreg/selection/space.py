"""The public set of models that a selection chooses from.

A space is made from the formula and the arguments of the call alone, before any row is read. Its
*units* are what enters or leaves a model: the terms outside `keep`, or, with ``units="column"``,
their columns one by one. A model is a set of units; the columns of `keep` are in every model.

``hierarchy="strong"``: an interaction comes only with every lower-order term made of its factors.
Columns are always those of the full formula: patsy codes `a:b` given `a` and `b`, and a model that
lacks a term simply lacks its columns.

Order. `Space.models` lists models in binary counting order: unit 0 is the lowest bit, so that the
first model is the smallest one and the last unit changes least often.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

import numpy as np
from flint import fmpz_poly

from dpreg.arrays import Bools, Ints
from dpreg.errors import ArgumentError
from dpreg.formula.design import Design, build_design
from dpreg.formula.terms import Term
from dpreg.request import SelectionRequest
from dpreg.schema import Schema


@dataclass(frozen=True, slots=True)
class Space:
    """The models on offer: subsets of the units, by size and hierarchy.

    Attributes
    ----------
    units : tuple of str
        Names of what may enter or leave, q of them.
    unit_columns : tuple of tuples of int
        The z columns of each unit.
    keep_columns : tuple of int
        The z columns in every model.
    max_units : int or None
        The most units in a model; None means no limit.
    requires : tuple of tuples of int
        For each unit, the units that it comes with, all of them (transitively closed); () for the
        whole if there is no hierarchy.
    """

    units: tuple[str, ...]
    unit_columns: tuple[tuple[int, ...], ...]
    keep_columns: tuple[int, ...]
    max_units: int | None = None
    requires: tuple[tuple[int, ...], ...] = ()

    @property
    def size(self) -> int:
        """The exact number of models, counted without listing them.

        Notes
        -----
        Models are the sets of units that hold what each of their members needs, and are counted by
        size: s of them is the coefficient of x^s. Proof, by induction: units tied by no need are
        chosen freely (binomials); sets that share no need multiply; otherwise take a unit v: the
        sets without v are those of the units less v and all that need it, the sets with v are v and
        its needs joined to those of the rest. Each branch has fewer units. Results are remembered
        by the set: the work grows with the units that others need (at worst as 2 to their number),
        not with all of them.
        """
        needs = {unit: frozenset(needed) for unit, needed in enumerate(self.requires)}

        @cache
        def counted(units: frozenset[int]) -> fmpz_poly:
            links = {u: own for u in units if (own := needs.get(u, frozenset()) & units)}
            parts: list[frozenset[int]] = []  # units that needs connect
            for u, own in links.items():
                joined = own | {u}
                parts, near = [p for p in parts if not p & joined], [p for p in parts if p & joined]
                parts.append(joined.union(*near))
            free = units.difference(*parts)
            if free or len(parts) != 1:
                return math.prod(map(counted, parts), start=fmpz_poly([1, 1]) ** len(free))
            demand = Counter(chain.from_iterable(links.values()))
            v = max(units, key=lambda u: (demand[u], -u))
            above = {u for u, own in links.items() if v in own}
            joined = links.get(v, frozenset()) | {v}
            within = fmpz_poly([0, 1]) ** len(joined) * counted(units - joined)
            return counted(units - above - {v}) + within

        by_size = counted(frozenset(range(len(self.units)))).coeffs()
        return sum(map(int, by_size[: self.limit + 1]))

    @property
    def limit(self) -> int:
        """The most units that a model can have."""
        return len(self.units) if self.max_units is None else min(self.max_units, len(self.units))

    def models(self) -> Bools:
        """List every model, one a row, over the q units, in binary counting order.

        Returns
        -------
        bool array (K, q), K = `size`
            Built unit by unit, dropping what can no longer become a model, so that the work is
            about q times the number listed and not 2**q.
        """
        q = len(self.units)
        listed = np.zeros((1, q), dtype=np.bool_)
        # The last unit is the highest bit: it is decided first and changes least often.
        for unit in range(q - 1, -1, -1):
            within = listed.copy()
            within[:, unit] = True
            pair = np.stack([listed, within], axis=1).reshape(-1, q)
            # Requirements are closed, so the smallest completion adds just the missing ones.
            minimal = pair.copy() if self.requires else pair
            for decided in range(unit, q) if self.requires else ():
                minimal[:, list(self.requires[decided])] |= pair[:, decided, None]
            possible = (minimal[:, unit:] == pair[:, unit:]).all(axis=1)
            listed = pair[possible & (minimal.sum(axis=1) <= self.limit)]
        return listed

    def columns(self, models: Bools) -> Bools:
        """Return each model's z columns, keep included: bool (K, p + 1)."""
        used = chain(self.keep_columns, *self.unit_columns)
        out = np.zeros((len(models), 1 + max(used, default=0)), dtype=np.bool_)
        out[:, list(self.keep_columns)] = True
        for unit, columns in enumerate(self.unit_columns):
            out[:, list(columns)] = models[:, unit, None]
        return out

    def prices(self, phi: int, psi: int) -> Ints:
        """Return what each unit is charged, int64 (q,): phi for a column of it, and psi once."""
        return np.array([phi * len(columns) + psi for columns in self.unit_columns], dtype=np.int64)


_MOST_COLUMNS = 2_000  # work
"""Columns of all candidates: beyond half a minute, time grows with their cube."""


def design_of(request: SelectionRequest, schema: Schema) -> Design:
    """Build the request's design from the schema alone.

    Raises
    ------
    ArgumentError
        If it has more columns than a choice can weigh in minutes.
    """
    design = build_design(
        request.formula, schema, keep=request.keep, clip=request.clip, center=request.center
    )
    if len(design.columns) > _MOST_COLUMNS:
        wide = max(design.terms, key=lambda term: len(term.columns))
        raise ArgumentError(
            f"the candidates have {len(design.columns):,} columns, {len(wide.columns):,} of them "
            f"{wide.name}'s: dp_select weighs up to {_MOST_COLUMNS:,} against each other. Merge "
            "levels in the schema, or fit a fixed formula with dp_ols."
        )
    return design


def space_of(request: SelectionRequest, design: Design, known: Sequence[str] = ()) -> Space:
    """Build the request's space of models from its design.

    Columns are numbered without those of `known`, terms that have no coefficients: 0 is the
    constant.
    """
    terms = [term for term in design.terms if term.name not in known]
    columns = (0, *(j for term in terms for j in term.columns if j))
    place = {j: k for k, j in enumerate(columns)}
    return build_space(
        [replace(term, columns=tuple(place[j] for j in term.columns)) for term in terms],
        tuple(design.columns[j].name for j in columns),
        keep=design.keep,
        units=request.units,
        max_terms=request.max_terms,
        hierarchy=request.hierarchy,
    )


def build_space(
    terms: Sequence[Term],
    columns: Sequence[str],
    *,
    keep: Iterable[str] = ("Intercept",),
    units: str = "term",
    max_terms: int | None = None,
    hierarchy: str = "none",
) -> Space:
    """Make the space of a design.

    Parameters
    ----------
    terms : sequence of Term
        The design's terms, the intercept first if there is one.
    columns : sequence of str
        Names of the z columns 0..p.
    keep : names of terms
        In every model. "Intercept" may be named though the formula has none.
    units : {"term", "column"}
        What enters or leaves a model.
    max_terms : int, optional
        The most units outside `keep`.
    hierarchy : {"none", "strong"}
        "strong": `a:b` only with `a` and `b` (and every lower-order term of its factors that the
        formula has). A term of `keep` asks for nothing.

    Raises
    ------
    ArgumentError
        An interaction's main effects are not all in the formula although ``hierarchy="strong"``.
    """
    kept = set(keep)
    free = [term for term in terms if term.name not in kept]
    keep_columns = tuple(c for term in terms if term.name in kept for c in term.columns)
    parts = (
        [(t, (c,)) for t in free for c in t.columns]
        if units == "column"
        else [(t, t.columns) for t in free]
    )
    names = tuple(columns[cs[0]] if units == "column" else t.name for t, cs in parts)
    requires: tuple[tuple[int, ...], ...] = ()
    if hierarchy == "strong":
        below = {term.name: _lower_order(term, terms) for term in free}
        requires = tuple(
            tuple(
                i
                for i, (other, theirs) in enumerate(parts)
                if other.name in below[term.name]
                and (units == "term" or _made_of(mine[0], theirs[0], other, columns))
            )
            for term, mine in parts
        )
        if not any(requires):
            requires = ()
    return Space(
        units=names,
        unit_columns=tuple(tuple(cs) for _, cs in parts),
        keep_columns=keep_columns,
        max_units=max_terms,
        requires=requires,
    )


def _lower_order(term: Term, terms: Sequence[Term]) -> frozenset[str]:
    """Names of the terms whose factors are some, not all, of the term's own."""
    factors = set(term.factors)
    lower = [t for t in terms if t.factors and set(t.factors) < factors]
    mains = {t.factors[0] for t in lower if len(t.factors) == 1}
    if len(factors) > 1 and mains != factors:
        missing = ", ".join(f for f in term.factors if f not in mains)
        raise ArgumentError(
            f'hierarchy="strong" lets {term.name} in only with its main effects, but the formula '
            f"lacks {missing}: add them, or use a*b in place of a:b."
        )
    return frozenset(t.name for t in lower)


def _made_of(column: int, other: int, lower: Term, names: Sequence[str]) -> bool:
    """Whether an interaction's column is a product with the lower term's column.

    By patsy's names, `a[T.x]:b` of `a[T.x]` and `b`. Where no column of the lower term fits by
    name (the interaction is coded by other contrasts), it is made of all of them.
    """
    own = set(names[column].split(":"))
    fits = [c for c in lower.columns if own.issuperset(names[c].split(":"))]
    return other in fits or not fits
