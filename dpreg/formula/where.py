"""`where=`: which rows a call is about, as a public test of each row alone.

A row that fails the test, or has a missing or undeclared cell in a column that the test names, is
read as a row of which every cell is missing: it is excluded, and stays a row.

Statement. A call with a test is as private as the call without one, under every relation, and the
number of rows that pass is as private as any other fact about rows.

Proof. Whether a row passes is a function of that row and of public facts (the text, the schema), so
what a pass makes of a row stays a function of the row alone, with values that a row of missing
cells could have had: each bound on what a row, or a person's rows, can add holds as it stands. The
number of rows is what it was, and so is all that is a function of it. QED

The text is parsed by `ast` into comparisons of `dpreg.formula.expressions` joined by and, or and
not; none of it is ever evaluated as Python.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Bools
from dpreg.columns import Boolean, Categorical, Columns, ColumnType, Numeric, Unbounded
from dpreg.errors import ArgumentError, DpregError, SchemaError, did_you_mean, shown
from dpreg.formula.expressions import Applied, Expression, Name, names
from dpreg.formula.factors import bound, interval_of
from dpreg.formula.rows import clean_cells
from dpreg.formula.syntax import RefusedError, parsed, read_expression, refuse
from dpreg.schema import Schema

_JOINS: Final = {ast.And: "and", ast.BitAnd: "and", ast.Or: "or", ast.BitOr: "or"}


@dataclass(frozen=True, slots=True)
class Where:
    """A test of rows: public facts, which may be pickled.

    Attributes
    ----------
    text : str
        As it was typed.
    columns : mapping of str to ColumnType
        What it reads, as the schema declares it.
    """

    text: str
    columns: Columns
    _test: Expression

    def read_with(self, columns: Columns) -> dict[str, ColumnType]:
        """Return what is to be read of the table: a call's columns and the test's own.

        Raises
        ------
        ArgumentError
            If both name a column and read its cells in different ways.
        """
        for name, how in columns.items():
            own = self.columns.get(name, how)
            numbers = isinstance(own, Numeric) and isinstance(how, Numeric | Unbounded)
            if not (numbers or own == how):
                raise ArgumentError(
                    f"where={shown(self.text)} reads {shown(name)} as the schema declares it, and "
                    "the call otherwise: declare in the schema what the call says."
                )
        return {**self.columns, **columns}

    def blanked(
        self, chunk: Mapping[str, NDArray[Any]], columns: Columns
    ) -> dict[str, NDArray[Any]]:
        """Return a chunk without the test's own columns, rows that fail as missing in `columns`."""
        fails = ~self.passes(chunk)
        kept = {name: cells for name, cells in chunk.items() if name not in self.columns}
        for name, how in columns.items():
            missing = -1 if isinstance(how, Categorical) else np.nan
            kept[name] = np.where(fails, missing, chunk[name]).astype(chunk[name].dtype)
        return kept

    def passes(self, chunk: Mapping[str, NDArray[Any]]) -> Bools:
        """Test each row of a chunk; numbers are clipped to their declared bounds first."""
        with np.errstate(all="ignore"):
            cells, complete = clean_cells(chunk, self.columns, clipped=True)
            return np.asarray(complete & (self._test.values(cells) == 1.0))


def where_of(where: object, schema: Schema) -> Where:
    """Read a test.

    Parameters
    ----------
    where : str
        Comparisons of declared columns, numbers and levels (``==  != < <= > >=``, ``in [...]``),
        joined by ``and or not`` or, within parentheses, ``& | ~``; a column of truths may stand
        alone. Expressions are those of formulas.
    schema : Schema

    Raises
    ------
    ArgumentError
        From public facts: the text cannot be read, names what is not declared, or can hold of no
        row, or of each, of the declared bounds.
    """
    if not isinstance(where, str):
        raise ArgumentError(
            "where must be text that tests each row by itself, such as \"age >= 18 and g == 'a'\"; "
            f"got {shown(where)}. A mask of the rows would tell how many pass."
        )
    try:
        test = _read(parsed(where), schema)
    except RefusedError as reason:
        raise ArgumentError(f"where={shown(where)}: {reason}.") from None
    used: dict[str, ColumnType] = {}
    for column in names(test):
        if column not in schema:
            near = did_you_mean(column, schema, "")
            raise SchemaError(
                f"where={shown(where)}: {shown(column)} is not a declared column{near}; declare it "
                "in the schema (variables of the calling program are not seen)."
            )
        used[column] = schema[column]
    try:
        test = bound(where, test, used)
        span = interval_of(where, test, used)
    except DpregError as reason:
        raise ArgumentError(str(reason).replace("factor ", "where=", 1)) from None
    if span.lo == span.hi:
        rows = "every row" if span.hi else "no row"
        raise ArgumentError(
            f"where={shown(where)} holds of {rows}, since numbers are clipped to their declared "
            "bounds: leave it out, or correct it or the schema."
        )
    return Where(where, used, test)


def _read(node: ast.expr, schema: Schema) -> Expression:
    """Rebuild a test out of the allowed nodes."""
    match node:
        case ast.BoolOp(op=op, values=values):
            return Applied(_JOINS[type(op)], tuple(_read(value, schema) for value in values))
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as op, right=right):
            return Applied(_JOINS[type(op)], (_read(left, schema), _read(right, schema)))
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return Applied("not", (_read(operand, schema),))
        case ast.Compare(left=left, ops=ops, comparators=rights):
            tests = zip([left, *rights], ops, rights, strict=False)
            return Applied("and", tuple(_compared(*one, schema) for one in tests))
    found = read_expression(node)
    if not isinstance(found, Name):
        refuse("it is a number and no test", "compare it, as in x > 0")
    if not isinstance(schema.get(found.column, Boolean()), Boolean):
        refuse(f"{shown(found.column)} is no truth", "compare it, or declare it as bool")
    return found


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, schema: Schema) -> Expression:
    for side in (left, right):
        if isinstance(side, ast.BinOp) and isinstance(side.op, ast.BitAnd | ast.BitOr):
            refuse("& and | bind more tightly than comparisons", "write (x > 1) & (y < 2), or and")
        if isinstance(side, ast.Constant) and isinstance(side.value, bool):
            if not isinstance(op, ast.Eq | ast.NotEq):
                refuse("it compares a truth by more than == and !=", "write flag, or not flag")
            other = _read(left if side is right else right, schema)
            return other if isinstance(op, ast.Eq) == side.value else Applied("not", (other,))
    if isinstance(op, ast.In | ast.NotIn):
        if not isinstance(right, ast.List | ast.Tuple | ast.Set) or not right.elts:
            refuse("what follows `in` is no list", "write g in ['a', 'b']")
        found = Applied("or", tuple(_compared(left, ast.Eq(), one, schema) for one in right.elts))
        return found if isinstance(op, ast.In) else Applied("not", (found,))
    return read_expression(ast.Compare(left, [op], [right]))
