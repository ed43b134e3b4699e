"""Looks at simulated tables without what a call does around them: for studies with many runs.

The looks, their noise, what follows from them and the choice are dpreg's own. What is left out is
what does not change what is released: formulas are read once a cell, moments are added up in
floats, and nothing is written for a reader. `tests/benchmarks/test_families.py` holds choices
against those of whole calls. Noise comes from a seed: never private.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from benchmarks._family_cells import Cell, Floats, Simulated, simulated
from dpreg.api.coefficients import exclusive_groups
from dpreg.choice import choose
from dpreg.families.estimate import astray
from dpreg.families.for_choice import family_laws
from dpreg.families.looks import FamilyLooked, look_at_family
from dpreg.families.model import FAMILIES, Asked, Model
from dpreg.families.plan import plan_family
from dpreg.formula.design import Design
from dpreg.moments import CELL_BITS, MOMENT_BITS, Moments, Vectors, to_grid
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget, exact
from dpreg.privacy.protection import Protection
from dpreg.schema import Schema
from dpreg.selection.space import Space, build_space
from dpreg.sources import Chunk, as_source

__all__ = ["chosen", "looked"]

_KNOWN = ("offset", "exposure", "response_cap", "trials")


@dataclass(frozen=True)
class Prepared:
    """What all tables of a cell have in common."""

    family: str
    model: Model
    design: Design


@lru_cache(maxsize=4)
def prepared(cell: Cell) -> Prepared:
    """Read the formula of a cell, once."""
    call = simulated(cell, np.random.default_rng(0)).call
    asked = Asked.of(dict.fromkeys(_KNOWN) | call)
    known, model = asked.model(call["formula"], Schema.from_any(call["schema"]))
    return Prepared(asked.family, model, model.design(known))


class _Made:
    """A design whose rows, put on the grid, are made once."""

    def __init__(self, design: Design, chunk: Chunk) -> None:
        self.types, self.size = design.types, design.size
        rows = design.block(chunk)
        self.rows = to_grid(rows, out=rows) * 2.0**-CELL_BITS

    def block(self, chunk: object) -> Floats:
        return self.rows.copy()


def _moments(vectors: Vectors) -> Moments:
    rows = vectors.rows if isinstance(vectors, _Made) else vectors.block({})
    cells = np.rint(rows.T @ rows * 2.0**MOMENT_BITS)
    return Moments(len(rows), tuple(tuple(map(int, row)) for row in cells.tolist()))


def looked(cell: Cell, made: Simulated, seed: int, part: Fraction = Fraction(0)) -> FamilyLooked:
    """Look at a table as `dp_glm` does, or with `part` kept for a look at the chosen columns."""
    at = prepared(cell)
    model, design = at.model, at.design
    columns, offsets = model.places(design)
    who = Protection(cell.neighbors, cell.contributions)
    cost = Budget(exact(cell.eps, "eps"), exact(cell.delta, "delta"))
    plan = plan_family(
        len(columns),
        cost,
        who,
        offsets=len(offsets) + (model.trials is not None),
        exclusive=exclusive_groups(design, range(len(design.columns))),
        later=part,
    )
    account = Account(who, cost, np.random.default_rng(seed))
    opened = plan.open(account)
    account.charge(None, "a study")
    (chunk,) = as_source(made.table).chunks(design.types, len(made.table))
    rows = _Made(design, chunk)
    return look_at_family(
        _moments,
        rows,
        FAMILIES[at.family](design),
        opened,
        response=(design.response.offset, design.response.width),
        columns=columns,
        offsets=offsets,
        known=[design.columns[j].width for j in offsets],
        trials=model.trials_of(design),
        public=who.n_is_public,
    )


@lru_cache(maxsize=4)
def _space(cell: Cell) -> Space:
    at = prepared(cell)
    columns = (0, *at.model.places(at.design)[0])
    place = {j: k for k, j in enumerate(columns)}
    terms = [
        replace(term, columns=tuple(place[j] for j in term.columns))
        for term in at.design.terms
        if term.name not in at.model.known
    ]
    names = tuple(at.design.columns[j].name for j in columns)
    return build_space(terms, names, keep=at.design.keep)


def chosen(cell: Cell, seen: FamilyLooked, alpha: float = 0.1) -> tuple[str, ...]:
    """Return the terms that a choice reports."""
    if astray(seen):
        return ()
    space, laws = _space(cell), family_laws(seen.looks[-1], seen.plan.degrees)
    return tuple(space.units[u] for u in choose(laws, space, false_inclusions=alpha).found)
