"""Results as the api would build them, from numbers that a test chooses."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpreg.privacy.budget import BudgetTable, Spend
from dpreg.results.claim import PrivacyClaim
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import SelectionResults

TERMS = ("bsqft", "lat", "county")


def _claim(seeded=False, split=False, neighbors="replace-one", contributions=1, delta="0"):
    eps = Fraction(9, 10) if split else Fraction(1)
    spends = [Spend("selection", "permute-and-flip", eps, Fraction(delta))]
    if split:
        spends = [
            Spend("radius", "exponential quantile", Fraction(1, 10), note="17 blocks"),
            Spend("selection", "permute-and-flip", eps, rows="half 1"),
            Spend("coefficients", "k-norm", eps, rows="half 2"),
        ]
    return PrivacyClaim(
        neighbors=neighbors,
        contributions=contributions,
        spends=BudgetTable(tuple(spends)),
        seeded=seeded,
    )


def _regression(names=("Intercept", "bsqft", "lat", "county[T.cc]"), seeded=False, **changes):
    p = len(names)
    rng = np.random.default_rng(7)
    root = rng.normal(size=(p, p))
    covariance = root @ root.T / 50 + np.eye(p) / 100
    errors = np.sqrt(np.diag(covariance))
    fields = {
        "formula": "price ~ bsqft + lat + county",
        "schema": {
            "price": (105, 905),
            "county": ["ala", "cc"],
            "idp": bool,
            "bsqft": (-9, 9),
            "lat": (-9, 9),
            "age": (-9, 9),
        },
        "endog_names": "price",
        "exog_names": names,
        "coefficients": rng.normal(size=p),
        "covariance": covariance,
        "sampling_errors": errors * 0.6,
        "privacy_errors": errors * 0.8,
        "error_variance": 22.5,
        "explained": 0.613,
        "nobs": 20190,
        "error_df": 20186.0,
        "method": "gram",
        "noise": "k-norm",
        "scaling": "box",
        "fit": "fixed",
        "eps": Fraction(1),
        "delta": Fraction(0),
        "clip": Fraction(1),
        "center": True,
        "bounds": {"price": "schema", "bsqft": "private"},
        "claim": _claim(seeded),
    }
    return RegressionResults(**(fields | changes))


def _selection(terms=TERMS, draws=1, fitted=False, seeded=False, **changes):
    rng = np.random.default_rng(3)
    kept = ("Intercept",)
    picked = [tuple(t for t in terms if rng.random() < 0.5) for _ in range(draws)]
    models = [kept + model for model in picked]
    fields = {
        "formula": "price ~ " + " + ".join(terms),
        "schema": {"price": (105, 905), "county": ["ala", "cc"]},
        "response": "price",
        "candidates": terms,
        "kept": kept,
        "columns": {term: (term,) for term in kept + terms},
        "models": models,
        "reported": models[0],
        "selected_formula": "price ~ " + " + ".join(models[0][1:] or ("1",)),
        "n_models": 2 ** len(terms),
        "nobs": 20190,
        "method": "pcls",
        "mechanism": "permute-and-flip",
        "engine": "enumerate",
        "units": "term",
        "hierarchy": "none",
        "max_terms": None,
        "eps": Fraction(1),
        "delta": Fraction(0),
        "radius": Fraction(1),
        "radius_source": "default",
        "clip": Fraction(1),
        "center": True,
        "penalty": "auto",
        "phi": Fraction(1, 3),
        "psi": 28.3355123,
        "sigma2": None,
        "bounds": {"price": "schema"},
        "claim": _claim(seeded, split=fitted),
        "regression": _regression(seeded=seeded, fit="split") if fitted else None,
    }
    return SelectionResults(**(fields | changes))


@pytest.fixture(scope="session")
def make_claim():
    return _claim


@pytest.fixture(scope="session")
def make_regression():
    return _regression


@pytest.fixture(scope="session")
def make_selection():
    return _selection


@pytest.fixture
def houses():
    """Simulated houses: nobody's data."""
    rng = np.random.default_rng(11)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["bsqft", "lat", "age"])
    return frame.assign(price=1.5 + frame["bsqft"] - frame["lat"] / 2 + rng.normal(size=200))
