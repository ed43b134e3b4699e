"""`selection_study` and `simulation_study`: the curator's view of what selection does.

Studies are **curator only**: they compute exactly what a mechanism hides. They check their
arguments as `dpreg.dp_select` does, run its stages up to the draw, and take the law of the draw in
place of a draw.

Tested in `tests/study/test_selection.py`, `tests/study/test_adaptive.py` and
`tests/study/test_simulation.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.api.select import ByLooks
from dpreg.errors import ArgumentError
from dpreg.formula.design import undeclared
from dpreg.options import PCLS, Amount, Amounts, MethodLike, SchemaLike, Table, Texts, unpacked
from dpreg.planning.facts import sized
from dpreg.privacy.budget import exact
from dpreg.privacy.mechanisms.choice import MECHANISMS
from dpreg.privacy.protection import NEIGHBORS
from dpreg.request import (
    Arguments,
    SelectionRequest,
    answered_by,
    choice,
    count,
    inclusions,
    names,
    optional,
    renamed_method,
    truth,
)
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.reader import Reader, showing
from dpreg.study.results import SIMULATED, AdaptiveStudy, SelectionStudy, marked
from dpreg.study.selection import simulate_choices, study
from dpreg.study.simulation import OBSERVED, SimulationDesign, SimulationStudy, run

_MOST_COLUMNS: Final = 12  # work
_SCALES: Final = ("range", "paper")
_OF_ALL: Final[Mapping[str, Any]] = {"shares": None, "draws": 1, "fit": None, "unsafe_seed": None}
"""Arguments of `dp_select` that are the same in every study of a selection."""
_STUDIED: Final = {"delta": 0, "method": "pcls", **_OF_ALL}
"""Those that are the same in every study of the paper's method."""


def _adaptive_study(
    call: Mapping[str, Any], budgets: tuple[Any, ...], deltas: tuple[Any, ...]
) -> AdaptiveStudy:
    """Simulate selections by looks under each eps and delta, combined."""
    requests = [
        SelectionRequest.of({**call, **_OF_ALL, "method": "adaptive", "eps": eps, "delta": delta})
        for eps, delta in product(budgets, deltas)
    ]
    shown, draws = showing(call["progress"]), count(call["draws"], "draws", 2)
    seed = count(call["seed"], "seed", 0)
    known, reader = Schema.from_any(call["schema"]), Reader(as_source(call["data"]), False)
    if unbounded := undeclared(requests[0].formula, known, reader.source):
        raise ArgumentError(
            f"a study buys no bounds: declare those of {', '.join(unbounded)} in the schema."
        )
    settled = [ByLooks.of(request, (reader, known)) for request in requests]
    design = settled[0].context.trial
    if len(design.columns) < 2:
        raise ArgumentError('method="adaptive" needs columns to look at: use method="pcls".')
    for one in settled:
        one.refuses(reader.source.rows)
    settings = [(one.request, one.plan()) for one in settled]
    space = settled[0].space(design)
    return simulate_choices(settings, design, space, reader, draws=draws, seed=seed, progress=shown)


def _drawn_by(mechanism: Any) -> Any:
    """Return the mechanism of one draw."""
    return "permute-and-flip" if mechanism == "auto" else mechanism


def _each(call: Arguments, name: str, check: Callable[..., Any], *rest: Any) -> tuple[Any, ...]:
    """Return the values of a varied argument, each as `check` returns it."""
    return tuple(check(one, name, *rest) for one in several(call[name], name))


def _bound(value: Any, name: str) -> Fraction | str:
    if isinstance(value, str) and value == OBSERVED:
        return OBSERVED
    return _size(value, name)


def _size(value: Any, name: str) -> Fraction:
    """Return a positive number, exactly, whose products with others stay in float64."""
    sized(value, name)
    return exact(value, name)


def _size_or_zero(value: Any, name: str) -> float:
    return 0.0 if exact(value, name) == 0 else sized(value, name, signed=True)


def _coefficients(beta: Any, empty: bool) -> NDArray[np.float64]:
    if isinstance(beta, Mapping):
        raise ArgumentError("beta must be a sequence of numbers, without names.")
    numbers = [_size_or_zero(one, "beta") for one in several(beta, "beta")]
    if len(numbers) > _MOST_COLUMNS:
        raise ArgumentError(f"beta must hold 1 to {_MOST_COLUMNS} coefficients.")
    if not (empty or any(numbers)):
        raise ArgumentError("beta must not be all zero unless empty=True.")
    return np.array(numbers)


def several(value: Any, name: str) -> tuple[Any, ...]:
    """Return the values of a varied argument; one value stands for itself."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (value,)
    values = tuple(np.atleast_1d(value)) if isinstance(value, np.ndarray) else tuple(value)
    if not values:
        raise ArgumentError(f"{name} must hold at least one value.")
    return values


def _check_public(requests: list[SelectionRequest]) -> None:
    if any(request.radius is None for request in requests):
        raise ArgumentError('a study spends no budget: radius must be a number, not "private".')
    if any(request.sigma2 == "private" for request in requests):
        raise ArgumentError('a study spends no budget: sigma2 must be a number, not "private".')


def _selection_study(asked: Arguments) -> Any:
    call = {**unpacked(asked), "keep": names(asked["keep"], "keep")}
    if call["draws"] != 1 and isinstance(asked["method"], PCLS):
        raise ArgumentError("draws: a study computes the law of one draw.")
    call["draws"] = asked["draws"]
    budgets, deltas, prices = (several(call[one], one) for one in ("eps", "delta", "penalty"))
    for one in budgets:
        sized(one, "eps")
    if choice(renamed_method(call["method"]), "method", ("pcls", "adaptive")) == "adaptive":
        return _adaptive_study(call, budgets, deltas)
    if any(exact(one, "delta") for one in deltas):
        raise ArgumentError('delta is for method="adaptive": "pcls" is pure.')
    for one in prices:
        if not isinstance(one, str) or one not in ("auto", "bic"):
            _size_or_zero(one, "penalty")
    radii = (None,) if call["radius"] is None else several(call["radius"], "radius")
    drawn = [_drawn_by(one) for one in several(call["mechanism"], "mechanism")]
    shown = showing(call["progress"])
    varied = ("eps", "radius", "penalty", "mechanism")
    requests = [
        SelectionRequest.of({**call, **_STUDIED, **dict(zip(varied, one, strict=True))})
        for one in product(budgets, radii, prices, drawn)
    ]
    _check_public(requests)
    reader = Reader(as_source(call["data"]), call["progress"])
    return study(
        requests,
        call["schema"],
        reader,
        draws=count(call["draws"], "draws"),
        seed=count(call["seed"], "seed", 0),
        progress=shown,
    )


@answered_by(_selection_study)
def selection_study(
    formula: str,
    data: Table,
    *,
    schema: SchemaLike,
    eps: Amounts = (1,),
    delta: Amounts = (0,),
    method: MethodLike = "pcls",
    neighbors: str = "replace-one",
    contributions: int = 1,
    units: str = "term",
    keep: Iterable[str] = ("Intercept",),
    max_terms: int | None = None,
    hierarchy: str = "none",
    false_inclusions: Amount = 0.1,  # by definition: as of `dpreg.dp_select`
    draws: int = 200,  # work
    seed: int = 0,
    progress: bool | None = None,
) -> SelectionStudy | AdaptiveStudy:
    """Compute the law of a private selection under every combination of settings. Curator only.

    Nothing here is private and nothing may be released: the probabilities are exact functions of
    the confidential rows. Use it on public or simulated rows, or inside the curator's walls.

    Parameters
    ----------
    formula, data, schema
        As for `dpreg.dp_select`; every column of numbers needs declared bounds.
    eps : number or sequence of numbers
    delta : number or sequence of numbers
        Combined with eps; only for "adaptive".
    method : {"pcls", "adaptive"} or object
        "pcls" computes exact laws, under every eps and every radius, penalty and mechanism of
        ``dpreg.PCLS(radius=(1, 2), penalty=("auto", 10), mechanism=...)``, in all combinations;
        numbers are 0 or lie between 1e-30 and 1e30. Its engine "enumerate" lists the models and is
        exact; "tree" draws, `draws` times a setting, and gives standard errors; "auto" lists up to
        65,536 models (2**20 where laplace is asked for).
        "adaptive" makes the looks at these rows `draws` times under each eps and delta, with seeded
        noise.
    neighbors, contributions, units, keep, max_terms, hierarchy, false_inclusions
        As for `dpreg.dp_select`, one value for the whole study.
    draws, seed : int
        For the tree, and for "adaptive".
    progress : bool, optional
        Show bars on stderr, over the rows and over the settings; default where stderr is a
        terminal.

    Returns
    -------
    SelectionStudy or AdaptiveStudy
        With ``probabilities``, ``frequencies``, ``agreement``, ``relative_rsquared``, ``plot()``;
        for "adaptive" ``outcomes`` (found, useless, in groups), ``frequencies``, ``alternatives``.

    Raises
    ------
    ArgumentError, FormulaError, SchemaError, DataError
        From public facts, before a row is read.

    Notes
    -----
    The laws are those of ``dp_select(..., fit=None, draws=1)``, all of eps spent on the draw and
    all rows read by it. Where `sigma2` is given under ``neighbors="add-remove"``, the noisy count
    that `dp_select` buys is charged, and taken at its true value.

    Examples
    --------
    >>> import dpreg
    >>> rand = dpreg.datasets.load_randhie()
    >>> study = dpreg.selection_study("mdvis ~ disea + lpi", rand.data, schema=rand.schema,
    ...                               eps=(1, 10),
    ...                               method=dpreg.PCLS(penalty=(0, 10)))
    >>> study
    <SelectionStudy: mdvis, 4 models x 4 settings, exact; curator only: not private, do not release>
    >>> study.frequencies.attrs["privacy"]
    'curator only: not private, do not release'
    """


def _simulation_study(call: Arguments) -> Any:
    each = partial(_each, call)
    empty, shown = truth(call["empty"], "empty"), showing(call["progress"])
    fractions = tuple(float(part) for part in np.linspace(0, 0.5, 51))
    if call["penalty"] is not None:
        fractions = each("penalty", _size_or_zero)
    if min(fractions) < 0:
        raise ArgumentError("penalty must be at least 0.")
    design = SimulationDesign(
        beta=_coefficients(call["beta"], empty),
        sigma=sized(call["sigma"], "sigma"),
        sizes=each("n", count),
        radii=each("radius", _size),
        eps=each("eps", _size),
        fractions=fractions,
        false_inclusions=optional(call["false_inclusions"], "false_inclusions", inclusions),
        mechanisms=each("mechanism", choice, MECHANISMS),
        neighbors=each("neighbors", choice, NEIGHBORS),
        scales=each("scale", choice, _SCALES),
        bounds=each("bound", _bound),
        empty=empty,
        datasets=count(call["datasets"], "datasets", 2),
        seed=count(call["seed"], "seed", 0),
    )
    return SimulationStudy(design, marked(run(design, progress=shown), SIMULATED))


@answered_by(_simulation_study)
def simulation_study(
    beta: Sequence[float] | NDArray[np.floating],
    n: int | Sequence[int] = (100, 1000),  # by definition: the paper's
    *,
    radius: Amounts = (1, 2.5, 3.5, 10),  # by definition: the paper's
    eps: Amounts = (0.1, 1, 5, 10),  # by definition: the paper's
    penalty: Amounts | None = None,
    mechanism: Texts = ("laplace",),
    neighbors: Texts = ("replace-one",),
    bound: Amounts = (OBSERVED,),
    scale: Texts = ("range",),
    false_inclusions: Amount | None = None,
    sigma: Amount = 1,
    empty: bool = False,
    datasets: int = 500,  # work
    seed: int = 0,
    progress: bool | None = None,
) -> SimulationStudy:
    """Simulate data sets and compute how often the right model is drawn: section 5.1 of the paper.

    The columns are independent and uniform on [-1, 1], without an intercept; y = x'beta + sigma z,
    z standard normal. Per data set the chance of the right model is exact, so that 500 data sets
    give what took the paper 500 runs of the mechanism each, with a far smaller error. The defaults
    are the paper's, except `scale` and `bound`.

    Parameters
    ----------
    beta : sequence of float
        True coefficients, in units of the response; at most 12, some may be zero. All numbers here
        are zero or lie between 1e-30 and 1e30 in size.
    n : int or sequence
        Numbers of rows.
    radius, eps : number or sequence
        R bounds the sum of the moduli of the coefficients, in units of the response.
    penalty : sequence of float, optional
        Penalties phi as parts of n; default 51 from 0 to 1/2, the paper's range.
    mechanism : str or sequence
        "laplace" (the paper's), "permute-and-flip", "exponential".
    neighbors : str or sequence
        "replace-one", "add-remove".
    bound : "observed", number or sequence
        r, where responses are clipped. "observed" is ``max |y|`` of each data set, as in the paper:
        a function of the rows that no budget pays for. A public number shows the price of that
        leak.
    scale : {"range", "paper"} or sequence
        The noise: dpreg's, from the range of the changes of the scores, or the paper's
        2 (r + R)^2 / eps. They differ where R < r, and under add-remove.
    false_inclusions : number, optional
        Where given, ``penalty="auto"`` is tried as well, with this expected number.
    sigma : number
        Standard deviation of the errors.
    empty : bool
        Whether the model without any column is a candidate (64 models; the paper has 63).
    datasets, seed : int
    progress : bool, optional
        Show a bar on stderr; default where stderr is a terminal.

    Returns
    -------
    SimulationStudy
        With ``proportions``, ``best``, ``table()``, ``price_of_the_leak``, ``plot()``.

    Notes
    -----
    Scores are float64 minima, within 1e-9 of the exact ones relative to y'y, and not floored to the
    grid of `dpreg.selection.scoring.problem`; chances of the laplace mechanism carry an absolute
    error below 3e-5 (`dpreg.study.simulation`). The simulated rows describe nobody; `beta` and the
    settings are as public as their source.

    References
    ----------
    Lei, J., Charest, A.-S., Slavkovic, A., Smith, A. and Fienberg, S. (2018). Differentially
    private model selection with penalized and constrained likelihood. JRSS-A 181, 609-633.

    Examples
    --------
    >>> import dpreg
    >>> study = dpreg.simulation_study((1, 1, 0), 500, radius=2.5, eps=5, datasets=20,
    ...                                penalty=(0.05, 0.1), bound=6)
    >>> study.best["penalty/n"].iloc[0]
    np.float64(0.1)
    """
