"""Differentially private statistics: variable selection, regression, means, quantiles and more."""

from importlib import metadata

from dpreg import datasets
from dpreg.api.aggregate import sample_aggregate
from dpreg.api.classic import dp_mean, dp_suffstats
from dpreg.api.glm import dp_glm
from dpreg.api.histogram import dp_histogram
from dpreg.api.quantile import dp_quantile
from dpreg.api.regression import dp_ols
from dpreg.api.select import dp_select
from dpreg.api.study import selection_study, simulation_study
from dpreg.planning import plan, plan_glm
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.reporting import write_report
from dpreg.results.load import load
from dpreg.schema import Schema

__all__ = [
    "Budget",
    "Ledger",
    "Schema",
    "datasets",
    "dp_glm",
    "dp_histogram",
    "dp_mean",
    "dp_ols",
    "dp_quantile",
    "dp_select",
    "dp_suffstats",
    "load",
    "plan",
    "plan_glm",
    "sample_aggregate",
    "selection_study",
    "simulation_study",
    "write_report",
]
__version__ = metadata.version("dpreg")
