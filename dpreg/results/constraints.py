"""Linear constraints on coefficients, as arrays or as text: "bsqft - lat = 0".

patsy reads the text, as statsmodels has it do: by a parser of its own over the coefficients' names,
which evaluates nothing as Python.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from patsy import DesignInfo, PatsyError

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError

__all__ = ["Constraints", "linear_constraints"]

Constraints = str | Sequence[str] | ArrayLike | tuple[ArrayLike, ArrayLike]


def linear_constraints(constraints: Constraints, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Return (R, q), m x p and m: the constraints say R beta = q.

    Parameters
    ----------
    constraints : str, list of str, array, or tuple (R, q)
        Text may hold several constraints between commas, and "a = b = 0" means two. Without "=" an
        expression is set to 0. Names are those of `exog_names`.
    names : sequence of str
        The p coefficients' names.

    Raises
    ------
    ArgumentError
        Where the constraints cannot be read, with the names of the coefficients that there are.
    """
    texts = [constraints] if isinstance(constraints, str) else constraints
    if isinstance(texts, list | tuple) and texts and all(isinstance(one, str) for one in texts):
        return _read(", ".join(texts), names)
    left, right = constraints if isinstance(constraints, tuple) else (constraints, 0.0)
    try:
        matrix = np.atleast_2d(np.asarray(left, dtype=np.float64))
        target = np.broadcast_to(np.asarray(right, dtype=np.float64), (len(matrix),)).copy()
    except (TypeError, ValueError):
        raise ArgumentError("constraints must be text, an array, or a tuple (R, q)") from None
    if matrix.ndim != 2 or matrix.shape[1] != len(names):
        raise ArgumentError(
            f"a constraint needs one number for each of the {len(names)} coefficients, "
            f"got {matrix.shape[-1]}"
        )
    return matrix, target


def _read(text: str, names: Sequence[str]) -> tuple[Floats, Floats]:
    try:
        with np.errstate(all="raise"):
            found = DesignInfo(list(names)).linear_constraint(text)
    except (PatsyError, ArithmeticError, IndexError) as problem:  # it gives up on "" by IndexError
        told = isinstance(problem, PatsyError)
        reason = str(problem).partition("\n")[0] if told else "it is not a linear expression"
        raise ArgumentError(
            f"constraint {text[:200]!r} cannot be read: {reason[:200]}; "
            f"the coefficients are {', '.join(names)}"
        ) from None
    return np.asarray(found.coefs, dtype=np.float64), found.constants.ravel()
