r"""The criterion that a choice minimises, in coordinates that make it quick and safe to compute.

The released law is g = K beta + N(0, W). For a model M, with K_M the columns of M and of keep,

    criterion(M) = D_M + sum of the prices of M's units,
    D_M = min over b of (g - K_M b)' W^-1 (g - K_M b).

`build_problem` whitens by W, projects the kept columns out and scales the others to length 1. What
remains is a small least-squares problem: its Gram matrix and the products with the response. A
ridge of 1e-10 on the unit scale stands in for a rank test: a column that the others explain
exactly then has nothing left to gain, and every way of computing a deviance gives the same number.

Tested in `tests/staged/choice/test_certify.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, qr, solve_triangular

from dpreg.arrays import Floats
from dpreg.selection.space import Space
from dpreg.staged.choice.prices import prices

__all__ = ["Model", "Problem", "ReleasedLaw", "Response", "build_problem", "factor", "resolved"]

Model = frozenset[int]
"""The units of a model, by their numbers in the space."""

RIDGE: Final = 1e-10
"""Added to the diagonal of a Gram matrix whose columns have length 1."""
_DEPENDENT: Final = 1e-7
"""A column of which less than this share is left beside the kept ones counts as one of them."""
_CELLS: Final = 1_000_000
"""The most matrix cells that are solved at once: 8 MB."""
_SEEN: Final = 0.25
"""Where less than this share of the directions stands clear of the noise, the released moments are
noise and little else. With 100 columns, 1,000 rows and eps = 1 (3 of 101 directions), one release
in 100 reported seven useless terms; releases with a quarter of their directions found .05 of five
true terms at the most."""


class ReleasedLaw(Protocol):
    """What a choice reads of a released law: g = K beta + N(0, W), intercept first."""

    @property
    def g(self) -> Floats:
        """Left-hand sides, (m,)."""

    @property
    def k(self) -> Floats:
        """Equations, (m, d)."""

    @property
    def covariance(self) -> Floats:
        """W, (m, m)."""

    @property
    def degrees(self) -> int | None:
        """Degrees of freedom of matrix-Laplace noise; None for Gaussian noise."""

    @property
    def eigenvalues(self) -> Floats:
        """Of the released second moments, (d,), in the coordinates of the look."""

    @property
    def noise_norm(self) -> float:
        """The size of the noise in those eigenvalues."""


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """One left-hand side in a problem's coordinates.

    Attributes
    ----------
    cross : (c,) array
        Products of the free columns with it.
    total : float
        Its squared length: the deviance of the model of the kept columns alone.
    """

    cross: Floats
    total: float


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Subset selection on one released law.

    Attributes
    ----------
    space : Space
        The units on offer, keep, hierarchy and limits.
    prices : (q,) array
    gram : (c, c) array
        Of the free columns, ordered by unit, each of length 1 before the ridge.
    design : (m, c) array
        Those columns.
    frame : (m, m) array
        Turns a left-hand side g into these coordinates.
    slices : tuple of slices
        Each unit's columns in `gram`.
    turned : (m,) array
        The released left-hand side in these coordinates.
    response : Response
        Its products.
    silent : bool
        Whether the noise hides so many directions that no term is reported.
    """

    space: Space
    prices: Floats
    gram: Floats
    design: Floats
    frame: Floats
    slices: tuple[slice, ...]
    turned: Floats
    response: Response
    silent: bool = False

    @property
    def size(self) -> int:
        """The number q of units."""
        return len(self.slices)

    @property
    def most(self) -> int:
        """The most units that a model may have."""
        top = self.space.max_units
        return self.size if top is None else min(top, self.size)

    @property
    def simple(self) -> bool:
        """Whether each unit is one column and needs no other."""
        return len(self.gram) == self.size and not self.space.requires

    def respond(self, g: Floats) -> Response:
        """Return another left-hand side, (m,), in these coordinates."""
        turned = self.frame @ g
        return Response(self.design.T @ turned, float(turned @ turned))

    def columns(self, model: Iterable[int]) -> NDArray[np.intp]:
        """Return the places in `gram` of a model's columns."""
        slices = map(self.slices.__getitem__, sorted(model))
        return np.array([place for s in slices for place in range(s.start, s.stop)], dtype=np.intp)

    def price(self, model: Iterable[int]) -> float:
        """Return the sum of a model's prices."""
        return float(self.prices[sorted(model)].sum())

    def deviance(self, model: Iterable[int], response: Response | None = None) -> float:
        """Return D_M."""
        response = self.response if response is None else response
        at = self.columns(model)
        if not len(at):
            return response.total
        cross = response.cross[at]
        return response.total - float(
            cross @ cho_solve(cho_factor(self.gram[np.ix_(at, at)]), cross)
        )

    def deviances(self, models: Sequence[Model], response: Response) -> Floats:
        """Return D_M of many models, those of one size at a time."""
        out = np.full(len(models), response.total)
        places = [self.columns(model) for model in models]
        sizes = np.array([len(at) for at in places], dtype=np.intp)
        for size in np.unique(sizes[sizes > 0]):
            alike = np.flatnonzero(sizes == size)
            step = max(1, _CELLS // int(size) ** 2)
            for first in range(0, len(alike), step):
                some = alike[first : first + step]
                part = np.array([places[i] for i in some])
                cross = response.cross[part]
                gram = self.gram[part[:, :, None], part[:, None, :]]
                fitted = np.linalg.solve(gram, cross[:, :, None])[:, :, 0]
                out[some] -= (cross * fitted).sum(axis=1)
        return out

    def criterion(self, model: Iterable[int], response: Response | None = None) -> float:
        """Return D_M plus the model's prices."""
        model = tuple(model)
        return self.deviance(model, response) + self.price(model)

    def allows(self, model: Model) -> bool:
        """Whether the space holds the model."""
        if not self.space.min_units <= len(model) <= self.most:
            return False
        needs = self.space.requires
        return not needs or all(model.issuperset(needs[unit]) for unit in model)


def factor(correlation: Floats) -> Floats:
    """Return the Cholesky factor of a correlation, with the least ridge that rounding leaves it.

    Released noise can make the matrix singular; whatever it is, this may not raise.
    """
    ridge, unit = 1e-12, np.eye(len(correlation))
    while ridge < len(correlation):
        try:
            return np.asarray(cholesky(correlation + ridge * unit, lower=True), dtype=np.float64)
        except LinAlgError:
            ridge *= 100
    return unit


def build_problem(law: ReleasedLaw, space: Space, false_inclusions: float) -> Problem:
    """Write a released law as a subset selection.

    Parameters
    ----------
    law : ReleasedLaw
    space : Space
        Its columns are those of the law: 0 is the intercept.
    false_inclusions : float
        alpha, in (0, q): sets the prices.
    """
    scale = np.sqrt(np.maximum(np.diag(law.covariance), np.finfo(float).tiny))
    correlation = law.covariance / np.outer(scale, scale)
    lower = factor(correlation)
    whiten = solve_triangular(lower, np.diag(1.0 / scale), lower=True)
    whitened = whiten @ law.k
    kept = _orthonormal(whitened[:, list(space.keep_columns)])
    frame = whiten - kept @ (kept.T @ whiten)
    at = [column for unit in space.unit_columns for column in unit]
    before = np.linalg.norm(whitened[:, at], axis=0)
    free = whitened[:, at] - kept @ (kept.T @ whitened[:, at])
    length = np.linalg.norm(free, axis=0)
    lost = length <= _DEPENDENT * before
    design = np.where(lost, 0.0, free / np.where(lost, 1.0, length))
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] = 1.0 + RIDGE
    ends = np.cumsum([len(unit) for unit in space.unit_columns], dtype=np.intp)
    slices = tuple(
        slice(int(e) - len(u), int(e)) for e, u in zip(ends, space.unit_columns, strict=True)
    )
    turned = frame @ law.g
    return Problem(
        space=space,
        prices=prices([len(u) for u in space.unit_columns], false_inclusions, law.degrees),
        gram=gram,
        design=design,
        frame=frame,
        slices=slices,
        turned=turned,
        response=Response(design.T @ turned, float(turned @ turned)),
        silent=resolved(law) < _SEEN * len(law.eigenvalues),
    )


def resolved(law: ReleasedLaw) -> int:
    """Return how many directions of the released moments stand clear of the noise."""
    return int((law.eigenvalues > law.noise_norm).sum())


def _orthonormal(columns: Floats) -> Floats:
    """Return an orthonormal basis, (m, r), of what the columns span."""
    length = np.linalg.norm(columns, axis=0)
    unit = columns[:, length > 0] / length[length > 0]
    if not unit.shape[1]:
        return np.zeros((len(columns), 0))
    basis, triangle, _ = qr(unit, mode="economic", pivoting=True)
    return np.asarray(basis[:, np.abs(np.diag(triangle)) > _DEPENDENT], dtype=np.float64)
