"""`plan(family=)`: which of its arguments a family has, and which plan they ask for.

Tested in `tests/planning/test_glm_choice.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dpreg import arguments
from dpreg.errors import ArgumentError
from dpreg.options import unpacked
from dpreg.planning.arguments import chance_of, sized
from dpreg.planning.glm import GLMPlan, plan_glm
from dpreg.planning.glm_choice import GLMSelectionPlan, plan_choice
from dpreg.request import choice, count, inclusions

__all__ = ["check_without", "plan_of_family"]

_LINEAR: Final[Mapping[str, Any]] = {
    "sigma": None,
    "candidates": None,
    "mechanism": "auto",
    "radius": None,
    "clip": 1.0,
    "center": True,
    "penalty": "auto",
    "sigma2": None,
}
"""Arguments that a linear model has, and their defaults."""
_SELECTING: Final[Mapping[str, Any]] = {
    "effects": None,
    "chance": 0.8,
    "keep": ("Intercept",),
    "max_terms": None,
    "false_inclusions": 0.1,
    "fit": "auto",
}
"""Arguments that only a selection has."""
_FITTING: Final[Mapping[str, Any]] = {
    "spread": None,
    "noise": None,
    "correlation": 0.0,
    "like": None,
}
"""Arguments that only a fit has."""
_OWN: Final = ("mean", "spread", "scatter", "noise")
"""Arguments that only a family has."""
_BOTH: Final = (
    "formula", "schema", "mean", "n", "eps", "delta", "family", "sd", "neighbors", "contributions",
)  # fmt: skip


def check_without(call: Mapping[str, Any]) -> None:
    """Check that a linear model has no argument of a family, and all that it needs itself."""
    given = [name for name in _OWN if call[name] is not None]
    if given:
        raise ArgumentError(
            f'{", ".join(given)} needs family=, such as family="binomial": a linear model has none.'
        )
    for name in ("effects", "sigma"):
        if call[name] is None:
            raise ArgumentError(f"{name} is required, except with family=.")


def plan_of_family(call: Mapping[str, Any]) -> GLMPlan | GLMSelectionPlan:
    """Plan `dp_glm` or `dp_select(family=)`.

    Parameters
    ----------
    call : mapping
        The arguments of `dpreg.plan`.
    """
    of = choice(call["of"], "of", ("select", "glm"))
    choice(arguments.renamed_method(call["method"]), "method", ("auto", "adaptive"))
    _refuse(call, _LINEAR, "a plan with family= has")
    for name in ("formula", "schema", *(("mean",) if of == "select" else ())):
        if call[name] is None:
            raise ArgumentError(f"a plan with family= needs {name}.")
    scatter = 1.0 if call["scatter"] is None else call["scatter"]
    given = {name: call[name] for name in _BOTH} | {"scatter": scatter}
    if of == "glm":
        _refuse(call, _SELECTING, 'of="glm" has')
        return plan_glm(**given, **{name: call[name] for name in _FITTING})
    _refuse(call, _FITTING, 'of="select" with family= has')
    _refuse(unpacked(call), {"exposure": None, "trials": None}, 'of="select" with family= plans')
    effects = call["effects"]
    if effects is None:
        raise ArgumentError(
            'effects, the coefficients to be found, are required; only of="glm", which predicts '
            "standard errors, has none."
        )
    if not hasattr(effects, "items"):
        raise ArgumentError("with family= effects must be a mapping of columns to coefficients.")
    chance = chance_of(call["chance"])
    most = call["max_terms"]
    keep = arguments.names(call["keep"], "keep")
    if "Intercept" not in keep:
        raise ArgumentError('with family= the intercept is in every model: keep "Intercept".')
    return plan_choice(
        {str(name): sized(value, "effects", signed=True) for name, value in effects.items()},
        given | dict.fromkeys(_FITTING) | {"keep": keep},
        chance=chance,
        false_inclusions=float(inclusions(call["false_inclusions"])),
        max_terms=None if most is None else count(most, "max_terms", 0),
        fit=choice(call["fit"], "fit", ("auto", "same", "fresh", None)),
    )


def _refuse(call: Mapping[str, Any], usual: Mapping[str, Any], who: str) -> None:
    given = [name for name, value in usual.items() if _differs(call[name], value)]
    if given:
        raise ArgumentError(f"{who} no {', '.join(given)}: leave it out.")


def _differs(given: Any, usual: Any) -> bool:
    if usual is None or given is None:
        return given is not usual
    return bool(given != usual)
