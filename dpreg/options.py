"""Options of a method or a family as objects: `PCLS(radius=2)`, `Poisson(exposure="years")`.

Each call takes such an object, its name alone (``method="pcls"``: all defaults), or a mapping with
the name and the options, as TOML and R write it (``{"name": "pcls", "radius": 2}``). The call that
gets it checks the values. Options that used to be arguments of the calls are still taken there for
one minor version, with a warning (`RETIRED`, `grouped`).

The types of arguments that calls of every kind name in their signatures.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpreg.errors import ArgumentError, DpregDeprecation, did_you_mean, printable, shown
from dpreg.running import warn
from dpreg.schema import Schema

Amount: TypeAlias = int | float | str | Decimal | Fraction
"""A number that is taken exactly as typed: 0.1, "0.1", "1e-6", Fraction(1, 3)."""

Amounts: TypeAlias = Amount | Sequence[Amount] | NDArray[np.number]
"""One such number, or several."""

Texts: TypeAlias = str | Sequence[str]
"""One word, or several."""

Table: TypeAlias = object
"""What `dpreg.sources.as_source` takes; many of these have no type that could be named without
importing their library."""

SchemaLike: TypeAlias = Schema | Mapping[str, object] | str | os.PathLike[str] | None
"""A schema, a mapping of columns to declarations, or the path of a TOML or JSON file."""

Bins: TypeAlias = int | str | Sequence[float] | NDArray[np.floating]
"""A number of equal bins, edges, or "private"."""

Cells: TypeAlias = object
"""A column's name, a list of names, or the cells themselves: an array, list, Series or table."""

Pair: TypeAlias = Sequence[float] | tuple[float, float] | NDArray[np.floating]

Bounds: TypeAlias = Pair | Mapping[str, Pair] | None
"""(lowest, highest) for every column, or a mapping of names to such pairs."""


class Options:
    """Options of a method or a family, frozen."""

    __slots__ = ()

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults."""
        usual = _defaults(type(self)).items()
        values = ((name, getattr(self, name), own) for name, own in usual)
        return {name: value for name, value, own in values if not _same(value, own)}

    def told(self) -> dict[str, Any]:
        """Return the name and the given options, as a mapping that stands for the object."""
        return {"name": type(self).__name__.lower(), **self.given()}

    def __repr__(self) -> str:
        """Show the given options; of what may hold rows the type alone."""
        inside = ", ".join(f"{name}={shown(value)}" for name, value in self.given().items())
        return f"{type(self).__name__}({inside})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Method(Options):
    """What every method for a linear model has.

    Attributes
    ----------
    clip : number in (0, 1]
        The response, scaled to [-1, 1], is clipped to [-clip, clip].
    center : bool
        Whether the response is centred at the middle of its bounds before scaling; without an
        intercept it never is.
    """

    clip: Amount = 1.0
    center: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Auto(Method):
    """The method that a public rule takes; a note of the result says which, and why.

    Attributes
    ----------
    clip, center
        As for `Method`.
    noise : {"gaussian", "matrix-laplace", "laplace"}, optional
        As for `Gram`; "laplace" means "gram".
    """

    noise: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Adaptive(Method):
    """Several looks at the rows, each at the fit that the looks before gave.

    Attributes
    ----------
    clip, center
        As for `Method`.
    noise : {"gaussian", "matrix-laplace"}, optional
        "gaussian" needs delta. None takes the one with the least expected error.
    """

    noise: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Gram(Method):
    """One release of the moment matrix.

    Attributes
    ----------
    clip, center
        As for `Method`.
    noise : {"gaussian", "matrix-laplace", "laplace"}, optional
        "gaussian" needs delta; "laplace" has less noise where a factor has many levels. None takes
        the one with the least expected error.
    """

    noise: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Objective(Method):
    """Coefficients alone, by a perturbed objective; see `dpreg.estimation.few`.

    Attributes
    ----------
    clip, center
        As for `Method`.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SSP(Method):
    """Perturbed sufficient statistics: coefficients alone.

    Attributes
    ----------
    clip, center
        As for `Method`.
    noise : {"analytic", "wang", "classical"}, optional
        Whose constants the noise takes; None is "analytic".
    scaling : {"box", "row-norm", "row-norm-xy", "max-norm"}
        How rows are brought into the unit ball. The last three act on columns already mapped to
        [-1, 1] by their public bounds; "row-norm" and "row-norm-xy" divide each row by its own
        norm, so their coefficients are those of rows of norm one, not of the columns as they are.
    """

    noise: str | None = None
    scaling: str = "box"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AdaSSP(SSP):
    """Perturbed sufficient statistics with an adaptive ridge: coefficients alone; see `SSP`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PCLS(Method):
    """Penalised constrained least squares, Algorithm 1 of Lei et al. (2018).

    `dpreg.selection_study` takes several values of radius, penalty and mechanism, and varies them
    in all combinations.

    Attributes
    ----------
    clip, center
        As for `Method`.
    radius : number or "private", optional
        R, the bound on the sum of the moduli of the scaled coefficients; default `clip`. If it is
        too small, strong variables exclude each other; noise grows with its square.
    penalty : "auto", "bic" or number
        A number is phi, charged per column, in squared units of the scaled response. "auto"
        charges each term what keeps the expected number of useless terms at `false_inclusions`,
        and BIC's charge as well where `sigma2` is given.
    sigma2 : number or "private", optional
        Residual variance, in squared units of the scaled response.
    mechanism : {"auto", "permute-and-flip", "exponential", "laplace"}
        "auto": permute-and-flip, or for several draws with delta the exponential mechanism where
        exact composition makes it clearly better. "laplace" is the paper's.
    draws : int
        How many models are drawn; frequencies are shares of these. The most frequent is reported.
    engine : {"auto", "enumerate", "tree"}
        List the models or search the tree of all subsets: the law is the same. The running time of
        both depends on the rows, and is not covered by the privacy claim.
    """

    radius: Amounts | None = None
    penalty: Amounts = "auto"
    sigma2: Amount | None = None
    mechanism: Texts = "auto"
    draws: int = 1
    engine: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PCPL(PCLS):
    """Profile likelihood, Algorithm 2 of Lei et al. (2018): needs delta; options as of `PCLS`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Binomial(Options):
    """A logistic regression.

    Attributes
    ----------
    trials : str, optional
        The column with a row's number of trials, of which the response counts the successes; not
        made of the response itself. Its upper bound, from the schema, has to be public; larger
        numbers count as that bound, and more successes than trials as all of them. A response that
        the schema leaves out has the bounds of the trials.
    """

    trials: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Poisson(Options):
    """A regression of counts, with the log link.

    Attributes
    ----------
    exposure : str, optional
        For rates: a positive column whose logarithm is the offset.
    response_cap : number, optional
        For counts that the schema leaves out: the largest that matters, from public knowledge.
    """

    exposure: str | None = None
    response_cap: Amount | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QuasiPoisson(Poisson):
    """As `Poisson`; the variance over the mean is reported as `scale`."""


MethodLike: TypeAlias = Method | Mapping[str, object] | str
FamilyLike: TypeAlias = Binomial | Poisson | Mapping[str, object] | str

_METHODS: Final = (Auto, Adaptive, Gram, Objective, SSP, AdaSSP, PCLS, PCPL)
_FAMILIES: Final = (Binomial, Poisson, QuasiPoisson)
_KINDS: Final[Mapping[str, Mapping[str, type[Options]]]] = {
    "method": {kind.__name__.lower(): kind for kind in _METHODS},
    "family": {kind.__name__.lower(): kind for kind in _FAMILIES},
}
"""Each goes by the name of its class, in small letters."""
_PAPERS: Final = ("mechanism", "radius", "penalty", "sigma2", "draws", "engine")
_COUNTS: Final = ("exposure", "response_cap", "trials")
RETIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "dp_select": (*_PAPERS, "clip", "center", *_COUNTS, "expected_rows"),
    "dp_ols": ("noise", "scaling", "clip", "center", "expected_rows"),
    "dp_glm": _COUNTS,
    "plan": (*_PAPERS[:4], "clip", "center", "response_cap", "noise"),
    "plan_glm": _COUNTS,
    "selection_study": (*_PAPERS[:4], "engine", "clip", "center"),
}
"""Arguments that calls had in 0.2, and which are now options of a method or a family."""


def _same(value: object, usual: object) -> bool:
    """Whether an option has its default; what is no plain value never has, whatever its ==."""
    plain = value is None or isinstance(value, bool | int | float | str)
    return plain and value == usual and isinstance(value, bool) == isinstance(usual, bool)


def unpacked(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments with every option beside them, by its own name.

    Objects and mappings under ``method`` and ``family`` become their names; options that the chosen
    one has not have their defaults. A value that is none of these stays as it is, for the call to
    refuse.
    """
    told = {**_OPTIONS, **call}
    for argument, kinds in _KINDS.items():
        value = call.get(argument)
        if isinstance(value, Mapping):
            value = _made(value, argument, kinds)
        if isinstance(value, Options):
            told |= {name: getattr(value, name) for name in _defaults(type(value))}
            told[argument] = type(value).__name__.lower()
    return told


def _made(value: Mapping[str, Any], argument: str, kinds: Mapping[str, type[Options]]) -> Options:
    """Return the object that a mapping stands for."""
    given = dict(value)
    name = given.pop("name", None)
    if not isinstance(name, str) or name not in kinds:
        listed = ", ".join(map(repr, kinds))
        raise ArgumentError(f"{argument}: its name must be one of {listed}; got {shown(name)}.")
    known = list(_defaults(kinds[name]))
    for option in given:
        if option not in known:
            near = did_you_mean(str(option), known)
            told = shown(printable(option)) if isinstance(option, str) else "one of another type"
            raise ArgumentError(f'{argument}: "{name}" has no option {told}{near}')
    return kinds[name](**given)


def grouped(call: str, given: MutableMapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Put options that stand among a call's arguments into its method and family, with a warning.

    Parameters
    ----------
    call : str
    given : mapping
        The call's arguments by keyword, changed in place.
    usual : mapping
        The defaults of all of them.
    """
    flat = {name: given.pop(name) for name in RETIRED.get(call, ()) if name in given}
    if not flat:
        return
    mends = []
    if "expected_rows" in flat:
        mends.append("leave out expected_rows, which nothing uses any more")
    for argument, kinds in _KINDS.items():
        own = {n: v for n, v in flat.items() if any(n in _defaults(k) for k in kinds.values())}
        if own:
            made = given[argument] = _with(
                given.get(argument, usual.get(argument)), own, argument, kinds
            )
            name = type(made).__name__ if isinstance(made, Options) else "..."
            inside = ", ".join(f"{one}=..." for one in own)
            mends.append(f"write {argument}=dpreg.{name}({inside})")
    warn(
        f"{call}: these arguments are removed in the next version: {'; '.join(mends)}.",
        DpregDeprecation,
    )


def _with(value: Any, flat: dict[str, Any], argument: str, kinds: Mapping[str, Any]) -> Any:
    """Return a method or family, given by its name, with these options."""
    if isinstance(value, Options | Mapping):
        raise ArgumentError(f"give {', '.join(flat)} with the other options of {argument}, once.")
    name = "adaptive" if value == "staged" else value
    if name is None:
        told = {one: flat[one] for one in flat if flat[one] is not None}
        if told:
            raise ArgumentError(
                f'{", ".join(told)} needs family=, such as family="poisson": a linear model has '
                "none."
            )
        return None
    if not isinstance(name, str) or name not in kinds:
        return value  # the call refuses it
    if name == "auto" and any(
        not _same(flat[one], _defaults(PCLS)[one]) for one in _PAPERS if one in flat
    ):
        name = "pcls"
    usual = {kind: _defaults(kind) for kind in kinds.values()}
    own = {one: value for one, value in flat.items() if one in usual[kinds[name]]}
    strange = [
        one
        for one in flat
        if one not in own and not any(_same(flat[one], us.get(one, ...)) for us in usual.values())
    ]
    if strange:
        having = [kind.__name__ for kind, options in usual.items() if strange[0] in options]
        raise ArgumentError(
            f'{argument}="{name}" has no {", ".join(strange)}: {strange[0]} belongs to '
            f"{', '.join(having)}."
        )
    return kinds[name](**own)


def _defaults(kind: type[Options]) -> dict[str, Any]:
    return {one.name: one.default for one in fields(kind)}  # type: ignore[arg-type]


_OPTIONS: Final = {
    name: usual for kind in (*_METHODS, *_FAMILIES) for name, usual in _defaults(kind).items()
}
"""Every option of a method or a family, with its default."""
