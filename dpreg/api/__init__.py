"""Public calls: check arguments, make a request, wire the rooms.

Importing this room tells `results` how a design is built from public facts, which it may not
import itself: loaded and unpickled results can then predict.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpreg.formula.design import Design, build_design
from dpreg.results.design import register_design_factory
from dpreg.schema import Schema


def _design(formula: str, schema: Mapping[str, Any], *, clip: Fraction, center: bool) -> Design:
    return build_design(formula, Schema(schema), keep=(), clip=clip, center=center)


register_design_factory(_design)
