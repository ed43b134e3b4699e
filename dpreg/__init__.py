"""Differentially private statistics: variable selection, regression, means, quantiles and more."""

from importlib import metadata

from dpreg import datasets, lei2018
from dpreg.api.aggregate import sample_aggregate
from dpreg.api.classic import dp_mean, dp_quantile, dp_suffstats
from dpreg.api.histogram import dp_histogram
from dpreg.api.regression import dp_glm, dp_ols
from dpreg.api.select import dp_select
from dpreg.options import (
    PCLS,
    PCPL,
    SSP,
    Adaptive,
    AdaSSP,
    Auto,
    Binomial,
    Gram,
    Objective,
    Poisson,
    QuasiPoisson,
)
from dpreg.planning import plan, plan_glm
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.results.base import load
from dpreg.results.report import write_report
from dpreg.schema import Schema
from dpreg.study.selection import selection_study
from dpreg.study.simulation import simulation_study

__all__ = [
    "PCLS",
    "PCPL",
    "SSP",
    "AdaSSP",
    "Adaptive",
    "Auto",
    "Binomial",
    "Budget",
    "Gram",
    "Ledger",
    "Objective",
    "Poisson",
    "QuasiPoisson",
    "Schema",
    "datasets",
    "dp_glm",
    "dp_histogram",
    "dp_mean",
    "dp_ols",
    "dp_quantile",
    "dp_select",
    "dp_suffstats",
    "lei2018",
    "load",
    "plan",
    "plan_glm",
    "sample_aggregate",
    "selection_study",
    "simulation_study",
    "write_report",
]
__version__ = metadata.version("dpreg")
