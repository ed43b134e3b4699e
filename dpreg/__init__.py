"""Differentially private variable selection and linear regression."""

from importlib import metadata

from dpreg import datasets
from dpreg.api.regression import dp_ols
from dpreg.api.select import dp_select
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.results.load import load
from dpreg.schema import Schema

__all__ = ["Budget", "Ledger", "Schema", "datasets", "dp_ols", "dp_select", "load"]
__version__ = metadata.version("dpreg")
