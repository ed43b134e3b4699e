"""`selection_study` and `simulation_study`: the curator's view of what selection does.

Studies are **curator only**: they compute exactly what a mechanism hides. They check their
arguments as `dpreg.dp_select` does, run its stages up to the draw, and take the law of the draw in
place of a draw.

Tested in `tests/study/test_selection.py`, `tests/study/test_adaptive.py` and
`tests/study/test_simulation.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.api.select import ByLooks
from dpreg.errors import ArgumentError
from dpreg.formula.design import undeclared
from dpreg.moments import read_moments
from dpreg.options import PCLS, Amount, Amounts, MethodLike, SchemaLike, Table, Texts, unpacked
from dpreg.privacy.budget import exact
from dpreg.request import (
    Arguments,
    SelectionRequest,
    answered_by,
    choice,
    count,
    names,
    renamed_method,
)
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.sources import as_source
from dpreg.sources.reader import Reader, showing
from dpreg.study.results import SIMULATED, AdaptiveStudy, SelectionStudy, marked
from dpreg.study.selection import Studied, is_listed, study_looks, study_paper
from dpreg.study.simulation import (
    OBSERVED,
    SimulationDesign,
    SimulationStudy,
    proportions,
    several,
    size_or_zero,
)

_SAME: Final[Mapping[str, Any]] = {"shares": None, "draws": 1, "fit": None, "unsafe_seed": None}
"""Arguments of `dp_select` that are the same in every study of a selection."""


def _selection_study(asked: Arguments) -> Any:
    """Answer `selection_study`: a request a combination, all on the same rows."""
    call = {**unpacked(asked), "keep": names(asked["keep"], "keep")}
    if call["draws"] != 1 and isinstance(asked["method"], PCLS):
        raise ArgumentError("draws: a study computes the law of one draw.")
    looks = choice(renamed_method(call["method"]), "method", ("pcls", "adaptive")) == "adaptive"
    call["method"] = "adaptive" if looks else "pcls"
    told = ("eps", "delta") if looks else ("eps", "radius", "penalty", "mechanism")
    varied = {name: several(call[name], name) for name in told}
    if not looks:
        if any(exact(one, "delta") for one in several(call["delta"], "delta")):
            raise ArgumentError('delta is for method="adaptive": "pcls" is pure.')
        call["delta"] = 0
    for price in varied.get("penalty", ()):
        if price not in ("auto", "bic"):
            size_or_zero(price, "penalty")
    drawn: dict[str, Any] = {
        "draws": count(asked["draws"], "draws", 2 if looks else 1),
        "seed": count(call["seed"], "seed", 0),
        "progress": showing(call["progress"]),
    }
    requests = [
        SelectionRequest.of({**call, **_SAME, **dict(zip(varied, one, strict=True))})
        for one in product(*varied.values())
    ]
    first, known = requests[0], Schema.from_any(call["schema"])
    for name, given in (("radius", varied.get("radius", ())), ("sigma2", (call["sigma2"],))):
        if "private" in given:
            raise ArgumentError(
                f'a study spends no budget: {name} must be a number, not "private".'
            )
    reader = Reader(as_source(call["data"]), not looks and call["progress"])
    if unbounded := undeclared(first.formula, known, reader.source):
        raise ArgumentError(
            f"a study buys no bounds: declare those of {', '.join(unbounded)} in the schema."
        )
    if not looks:
        prepared = [run.prepare(request, known, reader) for request in requests]
        design = run.design_of(first, known)
        space = run.space_of(first, design)
        is_listed(requests, space)
        moments = run.read_rows(first, design, reader).selecting
        paper = Studied(request=first, design=design, space=space, moments=moments, **drawn)
        return study_paper(paper, requests, prepared)
    settled = [ByLooks.of(request, (reader, known)) for request in requests]
    design = settled[0].context.trial
    if len(design.columns) < 2:
        raise ArgumentError('method="adaptive" needs columns to look at: use method="pcls".')
    for way in settled:
        way.refuses(reader.source.rows)
    space, (moments,) = settled[0].space(design), read_moments(reader, design)
    studied = Studied(request=first, design=design, space=space, moments=moments, **drawn)
    return study_looks(studied, reader, [(way.request, way.plan()) for way in settled])


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
    shown, design = showing(call["progress"]), SimulationDesign.of(call)
    return SimulationStudy(design, marked(proportions(design, progress=shown), SIMULATED))


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
