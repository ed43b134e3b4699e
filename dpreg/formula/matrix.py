"""The design: scaled columns of a formula, and the way from rows to them.

A `Design` knows public facts alone (`dpreg.formula.design.build_design` makes it from formula and
schema). `Design.block` then does to each row that is read what depends on that row alone.

Tested in `tests/formula/test_design.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.errors import ArgumentError, shown
from dpreg.formula.columns import INTERCEPT, Column, Term
from dpreg.formula.factors import Coded, Factor, Measure
from dpreg.formula.groups import CodedColumns
from dpreg.formula.rows import Product, clean_cells, factor_values, multiplied, scale, store
from dpreg.formula.straight import ShortWay
from dpreg.grouped.layout import CodedRows, Layout
from dpreg.schema import ColumnType, Schema
from dpreg.sources import LocalSource, as_source

__all__ = ["Design"]


@dataclass(frozen=True, slots=True, repr=False)
class Design:
    """The scaled columns of a formula: public facts, and the way from rows to them.

    The row vector of a complete row is z = (1, x_1, ..., x_p, y), every cell in [-1, 1]; of any
    other row it is 0. Holds no row and nothing computed from rows; pickling keeps the arguments of
    `build_design` and builds it again.

    Attributes
    ----------
    formula : str
        The formula as it was typed.
    schema : Schema
        Bounds and levels of the raw columns.
    keep : tuple of str
        Terms kept in every model.
    clip : Fraction
        c: the scaled response is clipped to [-c, c].
    center : bool
        Whether the response is centred at the middle of its bounds.
    response : Column
        Its width includes `clip`.
    columns : tuple of Column
        Index j is index j of z; ``columns[0]`` is the constant, named "Intercept".
    terms : tuple of Term
        "Intercept" first, where the formula has it.
    needed : tuple of str
        Raw columns read, the response's first.
    types : mapping of str to ColumnType
        How each of them is read.
    layout : Layout
        Which columns `coded` leaves as codes.
    """

    formula: str
    schema: Schema
    keep: tuple[str, ...]
    clip: Fraction
    center: bool
    response: Column
    columns: tuple[Column, ...]
    terms: tuple[Term, ...]
    needed: tuple[str, ...]
    types: Mapping[str, ColumnType] = field(compare=False)
    _factors: Mapping[str, Factor] = field(compare=False)
    _response: Measure = field(compare=False)
    layout: Layout = field(compare=False)
    _products: tuple[Product, ...] = field(compare=False)
    _groups: tuple[CodedColumns, ...] = field(compare=False)
    _short: ShortWay = field(compare=False)
    _rebuilt: Callable[..., Design] = field(compare=False)

    @property
    def size(self) -> int:
        """D: the cells of a row vector."""
        return len(self.columns) + 1

    def levels_of(self, term: str) -> tuple[str, ...] | None:
        """Return the levels of a term that is one factor of levels, as patsy writes them."""
        factor = self._factors.get(term)
        return None if not isinstance(factor, Coded) else tuple(str(x) for x in factor.levels)

    @property
    def levels(self) -> tuple[int, ...]:
        """Indices of the columns that are made of factors of levels alone."""
        return tuple(j for j, column in enumerate(self.columns) if column.levels)

    @property
    def has_intercept(self) -> bool:
        """Whether the formula has an intercept."""
        return any(term.name == INTERCEPT for term in self.terms)

    def __repr__(self) -> str:
        """Show public facts only."""
        return (
            f"<Design {shown(self.formula, 200)}: {len(self.columns) - 1} columns "
            f"in {len(self.terms)} terms>"
        )

    def __reduce__(self) -> tuple[Callable[..., Design], tuple[Any, ...]]:
        """Keep the arguments only: what they make can be made again."""
        arguments = (self.formula, self.schema.to_dict(), self.keep, self.clip, self.center)
        return self._rebuilt, arguments

    def block(self, chunk: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Make scaled row vectors of some rows, each from its own row alone.

        Parameters
        ----------
        chunk : mapping of str to array
            The columns of `types`, as a source reads them.

        Returns
        -------
        ndarray, shape (rows, D), float64, Fortran order
            Stored units, not yet on the grid.
        """
        long = ShortWay({}, self.types, tuple(self._factors.values()))
        return self._made(chunk, range(self.size), (), long).dense

    def coded(self, chunk: Mapping[str, NDArray[Any]]) -> CodedRows:
        """Make the same vectors for the grid, with wide factors left as codes: see `layout`.

        A cell may lie beyond [-1, 1] where the grid's clip is the only one that it needs: see
        `dpreg.formula.straight`.
        """
        return self._made(chunk, self.layout.dense.tolist(), self._groups, self._short)

    def _made(
        self,
        chunk: Mapping[str, NDArray[Any]],
        places: Sequence[int],
        groups: Sequence[CodedColumns],
        way: ShortWay,
    ) -> CodedRows:
        with np.errstate(all="ignore"):
            cells, complete = clean_cells(chunk, way.types, clipped=True)
            values = factor_values(way.factors, cells, complete)
            out = np.empty((len(places), len(complete)))
            out[0] = 1.0
            for row, place in zip(out[1:], places[1:], strict=True):
                if (straight := way.columns.get(place)) is not None:
                    straight.store(chunk[straight.raw], row)
                elif place < len(self.columns):
                    store(self._products[place - 1], values, self.columns[place], row)
                else:
                    (response,) = factor_values([self._response], cells, complete).values()
                    scale(response[0], self.response, row)
            if way.columns:  # what took the fast path is NaN where it is missing
                complete &= ~np.isnan(out).any(axis=0)
            out[:, ~complete] = 0.0
            slots = tuple(group.slots(values, complete) for group in groups)
        return CodedRows(out.T, slots)

    def matrix(self, frame: object, columns: Sequence[int]) -> pd.DataFrame:
        """Compute raw design columns of new rows, for prediction.

        Cells are read as in fitting, but numbers are **not** clipped to the schema's bounds: a
        prediction extrapolates as `lm`'s does. A spline has no value outside its own bounds.

        Parameters
        ----------
        frame : pandas.DataFrame, or whatever `dpreg.sources.as_source` takes
        columns : sequence of int
            Indices into z.

        Returns
        -------
        pandas.DataFrame
            One column for each index, in the columns' own units, on the frame's index; a row is NaN
            where a cell that these columns need is missing, undeclared or without a finite value.
        """
        chosen = self._chosen(columns)
        products = [self._products[j - 1] for j in chosen if j > 0]
        factors = {
            part[0]: self._factors[part[0]] for product in products for part in product.parts
        }
        needed = dict.fromkeys(name for factor in factors.values() for name in factor.columns)
        types = {name: self.types[name] for name in needed}
        index = frame.index if isinstance(frame, pd.DataFrame) else None
        source = as_source(frame)
        if not isinstance(source, LocalSource):
            raise ArgumentError("newdata must be a table of this process, such as a DataFrame")
        rows = source.count() if source.rows is None else source.rows
        if types:
            pieces = [
                self._raw(chunk, types, factors, chosen)
                for chunk in source.chunks(types, max(1, rows))
            ]
        else:
            pieces = [np.ones((rows, len(chosen)))]
        values = np.concatenate(pieces) if pieces else np.empty((0, len(chosen)))
        return pd.DataFrame(values, index=index, columns=[self.columns[j].name for j in chosen])

    def _raw(
        self,
        chunk: Mapping[str, NDArray[Any]],
        types: Mapping[str, ColumnType],
        factors: Mapping[str, Factor],
        chosen: Sequence[int],
    ) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            cells, complete = clean_cells(chunk, types, clipped=False)
            values = factor_values(factors.values(), cells, complete)
            out = np.ones((len(complete), len(chosen)))
            for place, j in enumerate(chosen):
                if j > 0:
                    out[:, place] = multiplied(self._products[j - 1], values)
            out[~complete] = np.nan
        return out

    def to_user_units(
        self, columns: Sequence[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Map stored coefficients to coefficients of the columns' own units.

        With stored x_j = (X_j - o_j) / w_j and y = (Y - o) / w, the model y = b_0 + sum b_j x_j is
        Y = (o + w b_0 - sum w b_j o_j / w_j) + sum (w b_j / w_j) X_j.

        Parameters
        ----------
        columns : sequence of int
            Indices into z of the model's columns; 0 is the intercept.

        Returns
        -------
        T : ndarray, shape (m, m)
        t0 : ndarray, shape (m,)
            ``beta_user = T @ beta_stored + t0``. Covariances map as T C T'. A model without the
            intercept says nothing of o: its coefficients are those of Y - o, o being
            ``response.offset``, and t0 is 0.

        Raises
        ------
        ArgumentError
            If a column is shifted by the design and the model has no intercept to take it up.
        """
        factors, first, shift = self.factors_to_user_units(columns)
        matrix = np.diag(factors)
        if 0 in columns:
            matrix[list(columns).index(0)] = first
        return matrix, shift

    def factors_to_user_units(
        self, columns: Sequence[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return T of `to_user_units` as its diagonal and the intercept's row, and t0.

        Of a model without the intercept the row is the first one.
        """
        chosen = self._chosen(columns)
        scale = self.response.width
        factors = np.array([scale / self.columns[j].width for j in chosen])
        offsets = np.array([self.columns[j].offset for j in chosen])
        first, shift = np.zeros(len(chosen)), np.zeros(len(chosen))
        row = chosen.index(0) if 0 in chosen else 0
        if 0 in chosen:
            first[:] = -offsets * factors
            shift[row] = self.response.offset
        elif (offsets != 0).any():
            raise ArgumentError(
                "these columns are centred: a model of them needs column 0 as well."
            )
        first[row : row + 1] = factors[row : row + 1]
        return factors, first, shift

    def _chosen(self, columns: Sequence[int]) -> list[int]:
        chosen = [int(j) for j in columns]
        if any(not 0 <= j < len(self.columns) for j in chosen) or len(set(chosen)) < len(chosen):
            raise ArgumentError(
                f"columns must be different indices from 0 to {len(self.columns) - 1}."
            )
        return chosen
