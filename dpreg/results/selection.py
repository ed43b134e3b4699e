"""A released selection: which terms a differentially private mechanism chose, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpreg.results.base import Released
from dpreg.results.claim import PrivacyClaim
from dpreg.results.design import Design
from dpreg.results.regression import RegressionResults

__all__ = ["SelectionResults"]

Number = Fraction | float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SelectionResults(Released):
    """Variables of a linear model, selected with differential privacy.

    Parameters
    ----------
    formula : str
        As typed.
    schema : mapping
        The public facts about columns, as `Schema.to_dict()` writes them; bounds that were
        estimated privately are in it.
    response : str
        The response's name.
    candidates : tuple of str
        What could be chosen: terms, or columns where `units="column"`.
    kept : tuple of str
        Terms that are in every model.
    columns : mapping
        Term (or column) to the names of its design columns, for kept and candidates.
    models : tuple of tuples of str
        The K released draws, in order; each holds the kept terms too.
    selected : tuple of str
        The reported model: the most frequent draw, kept terms first.
    selected_formula : str
    n_models : int
        The number of models in the space, exact.
    nobs : int or None
        Rows, where they are public (replace-one); None under add-remove.
    method, mechanism, engine : str
        "pcls"; "permute-and-flip", ...; "enumerate", "tree".
    units, hierarchy : str
    max_terms : int or None
    eps, delta : Fraction
        As typed in the call.
    radius, clip : Fraction
        Of the l1 ball and of the response, in units of the scaled response.
    radius_source : {"given", "default", "private"}
    center : bool
    penalty : str
        The rule: "given", "auto" or "bic".
    phi, psi : Fraction or float
        What was charged per column and per term, in squared units of the scaled response.
    sigma2 : Fraction, float or None
        The residual variance that went into phi, where one was given or estimated privately.
    bounds : mapping
        Column to "schema" or "private": where its bounds come from.
    claim : PrivacyClaim
    notes : tuple of str
        Public remarks and the texts of public warnings, printed under the summary.
    regression : RegressionResults or None
        The coefficients of the selected model; None with `fit=None`.
    """

    kind = "selection"

    formula: str
    schema: Mapping[str, Any]
    response: str
    candidates: tuple[str, ...]
    kept: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]
    models: tuple[tuple[str, ...], ...]
    selected: tuple[str, ...]
    selected_formula: str
    n_models: int
    nobs: int | None
    method: str
    mechanism: str
    engine: str
    units: str
    hierarchy: str
    max_terms: int | None
    eps: Fraction
    delta: Fraction
    radius: Number
    radius_source: str
    clip: Fraction
    center: bool
    penalty: str
    phi: Number
    psi: Number
    sigma2: Number | None
    bounds: Mapping[str, str]
    claim: PrivacyClaim
    notes: tuple[str, ...] = ()
    regression: RegressionResults | None = None
    design: Design | None = None
