"""What results need of a design to predict, and who builds it.

A result holds formula and schema, which are public, and never a row. To predict, it needs the raw
design columns of a new table; the formula room knows how to make them, and results may not import
that room. The api registers a factory once, at import; a loaded or unpickled result calls it the
first time that it predicts.

Tested in `tests/results/test_serialize.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from dpreg.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Design", "DesignFactory", "NamedColumn", "register_design_factory", "registered_design"]


class NamedColumn(Protocol):
    """A design column, as far as results look at it."""

    @property
    def name(self) -> str:
        """The column's name, as in `exog_names`."""


class Design(Protocol):
    """The design of a formula, as far as results look at it."""

    @property
    def columns(self) -> Sequence[NamedColumn]:
        """The columns of the design matrix; index 0 is the constant, "Intercept"."""

    def matrix(self, frame: pd.DataFrame, columns: Sequence[int]) -> pd.DataFrame:
        """Return raw design columns of `frame`: its index kept, NaN where a row lacks a value."""


class DesignFactory(Protocol):
    """Builds a design from public facts alone."""

    def __call__(
        self, formula: str, schema: Mapping[str, Any], *, clip: Fraction, center: bool
    ) -> Design:
        """Return the design of `formula` under `schema` (as `Schema.to_dict` wrote it)."""


_registered: list[DesignFactory] = []


def register_design_factory(factory: DesignFactory) -> None:
    """Name the factory that loaded and unpickled results use; the last one named counts."""
    _registered[:] = [factory]


def registered_design(
    formula: str, schema: Mapping[str, Any], *, clip: Fraction, center: bool
) -> Design:
    """Build a design with the registered factory."""
    if not _registered:
        raise ArgumentError(
            "predict needs the design, and none is registered: `import dpreg`, then load again"
        )
    return _registered[0](formula, schema, clip=clip, center=center)
