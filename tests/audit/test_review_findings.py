"""What an adversarial review of the first build found, each kept from coming back."""

import os
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.scores import penalty_counts

import dpreg
from dpreg.errors import ArgumentError, BudgetError, SchemaError
from dpreg.estimation.perturbed import adassp
from dpreg.privacy.protection import Protection
from dpreg.selection.contest import LARGEST_SCORE, least_squares_contest, profile_contest, residuals
from dpreg.selection.space import Space

SCHEMA = {"x": (-1, 1), "z": (-1, 1), "y": (-1, 1)}


def _flat(response: float = 0.0) -> pd.DataFrame:
    data = pd.DataFrame({"x": np.ones(50), "z": -np.ones(50), "y": np.zeros(50)})
    data.loc[0, "y"] = response
    return data


# ---- totals beyond int64: a huge penalty once wrapped, and one row then decided the draw ----


@pytest.mark.parametrize("engine", ["enumerate", "tree"])
@pytest.mark.parametrize("penalty", [2**40, 2**60, "1e30", 10**300])
@pytest.mark.parametrize("response", [0.0, 1.0])
def test_a_huge_penalty_always_leaves_the_kept_terms_alone(
    engine: str, penalty: object, response: float
) -> None:
    for mechanism in ("permute-and-flip", "exponential"):
        result = dpreg.dp_select(
            "y ~ x + z",
            _flat(response),
            eps=1,
            schema=SCHEMA,
            fit=None,
            method=dpreg.PCLS(penalty=penalty, engine=engine, mechanism=mechanism),
        )
        assert result.selected == ["Intercept"]


def test_charges_of_the_largest_model_stay_below_the_cap() -> None:
    space = Space(("a", "b", "c"), ((1,), (2,), (3, 4)), (0,))
    huge = Fraction(10**200)
    contest = least_squares_contest(Fraction(1), Protection("replace-one")).priced(
        huge, huge, space
    )
    models = space.models()
    for q in (-LARGEST_SCORE, LARGEST_SCORE):
        totals = contest.totals(np.full(len(models), q, dtype=np.int64), models, space)
        counts = np.array([contest.phi, contest.psi])
        exact = [
            q + int(counts[0]) * int(c) + int(counts[1]) * int(u)
            for c, u in zip(*penalty_counts(space, models), strict=True)
        ]
        assert totals.tolist() == exact


# ---- PCPL with residuals beyond int64: whether it raised once depended on the rows ----


@pytest.mark.parametrize("radius", ["1e-10", "1e-18"])
@pytest.mark.parametrize("engine", ["enumerate", "tree"])
def test_pcpl_never_raises_however_small_the_radius(radius: str, engine: str) -> None:
    for response in (0.0, 1.0):
        data = _flat(response)
        data["y"] = response
        dpreg.dp_select(
            "y ~ x + z",
            data,
            eps=1,
            delta=1e-6,
            schema=SCHEMA,
            fit=None,
            method=dpreg.PCPL(radius=radius, engine=engine),
        )


def test_residuals_saturate_without_a_jump() -> None:
    q = np.array([-(2**40), 0, 2**40], dtype=np.int64)
    for offset in (0, 2**60, 2**61 - 1, 2**61, 2**62, 2**80):
        expected = [min(int(value) + offset, 2**61) for value in q]
        assert residuals(q, offset).tolist() == expected


def test_pcpl_with_too_little_eps_is_uniform_and_does_not_raise() -> None:
    contest = profile_contest(
        2**24,
        offset=0,
        rows=5_000_000,
        rho=Fraction(1),
        protection=Protection("replace-one"),
        eps=Fraction(1, 10**6),
    )
    assert contest.uniform


def test_pcls_with_too_little_eps_is_refused_before_the_charge() -> None:
    ledger = dpreg.Ledger(1)
    with pytest.raises(ArgumentError, match="eps is too small"):
        dpreg.dp_select(
            "y ~ x", _flat(), eps="1e-6", schema=SCHEMA, contributions=10**6, budget=ledger
        )
    assert ledger.spent.eps == 0


@pytest.mark.parametrize("radius", ["1e-30", "1e30"])
def test_a_radius_out_of_reach_is_refused_before_the_charge(radius: str) -> None:
    ledger = dpreg.Ledger(1)
    with pytest.raises(ArgumentError, match="radius"):
        dpreg.dp_select(
            "y ~ x", _flat(), eps=1, schema=SCHEMA, budget=ledger, method=dpreg.PCLS(radius=radius)
        )
    assert ledger.spent.eps == 0


# ---- one account, however many names its file has ----


def test_a_ledger_behind_a_symbolic_link_is_the_same_account(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    first = dpreg.Ledger(1, real)
    link.symlink_to(real)
    dpreg.Ledger(1, link).charge(dpreg.Budget("0.7"), "by the link")
    assert first.spent.eps == Fraction(7, 10)
    with pytest.raises(BudgetError):
        first.charge(dpreg.Budget("0.7"), "by the file")


def test_a_ledger_with_a_hard_link_is_refused(tmp_path: Path) -> None:
    dpreg.Ledger(1, tmp_path / "real.json")
    os.link(tmp_path / "real.json", tmp_path / "other.json")
    with pytest.raises(BudgetError, match="second name"):
        dpreg.Ledger(1, tmp_path / "other.json")


def test_a_ledger_does_not_add_unlike_promises() -> None:
    ledger = dpreg.Ledger(5)
    call = {"formula": "y ~ x", "data": _flat(), "eps": 1, "schema": SCHEMA, "budget": ledger}
    dpreg.dp_select(**call)
    dpreg.dp_ols(**call)
    for change in ({"neighbors": "add-remove"}, {"contributions": 5}):
        with pytest.raises(BudgetError, match="do not add up"):
            dpreg.dp_select(**call, **change)
    assert ledger.spent.eps == 2
    with pytest.raises(ArgumentError, match="must be a Ledger"):
        dpreg.dp_select(**{**call, "budget": 3})


# ---- what the claim says is public, and what is refused before bounds are bought ----


def test_the_claim_names_what_is_public_and_running_time() -> None:
    result = dpreg.dp_select("y ~ x", _flat(), eps=1, schema=SCHEMA)
    assert "the table's column names count as public" in result.privacy
    assert "dtypes" not in result.privacy
    assert "how long the call took is not covered" in result.privacy


@pytest.mark.parametrize(
    "factor", ["I(x > 50)", "np.log(x)", "I(1 / (x + 2e6))", "np.exp(x)", "np.sqrt(x)", "I(x ** 9)"]
)
def test_factors_that_bought_bounds_might_not_suit_are_refused_first(factor: str) -> None:
    ledger = dpreg.Ledger(5)
    with pytest.raises(SchemaError, match="declare"):
        dpreg.dp_select(
            f"y ~ {factor}", _flat(), eps=5, schema={"y": (-1, 1)}, budget=ledger, fit=None
        )
    assert ledger.spent.eps == 0


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-30, 1.0, 1e30, 1e200, 1e308])
@pytest.mark.parametrize("formula", ["y ~ x * z", "y ~ x + I(x ** 4)", "y ~ x:z + I(x - z)"])
def test_bought_bounds_always_suit_polynomials(formula: str, size: float) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {
            "x": size * rng.uniform(-1, 1, size=200),
            "z": np.full(200, size),
            "y": rng.normal(size=200),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpreg.errors.DpregWarning)
        result = dpreg.dp_select(formula, data, eps=5, fit="share", delta=1e-6)
    assert set(result.bounds.values()) == {"private"}


# ---- a model without an intercept predicts what it says ----


@pytest.mark.parametrize("keep", [("x",), ("Intercept", "x")])
def test_predictions_without_an_intercept_are_not_shifted(keep: tuple[str, ...]) -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 10, 4000)
    data = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(0, 0.1, 4000)})
    call = {"delta": 1e-6, "schema": {"x": (0, 10), "y": (0, 40)}, "keep": keep, "unsafe_seed": 1}
    result = dpreg.dp_select("y ~ x - 1", data, eps=1000, **call)
    assert result.predict(pd.DataFrame({"x": [5.0]})).iloc[0] == pytest.approx(10, abs=0.3)
    assert not result.center


def test_arrays_that_are_no_numbers_are_refused_by_dtype_and_their_cells_never_heard_of() -> None:
    with pytest.raises(ArgumentError, match="x must be an array of numbers"):
        adassp(np.zeros((1, 1), dtype="datetime64[s]"), [1.0], eps=1, delta=1e-6)
    for cell in ("secret", None, 0.5):  # whether it raised once depended on the cell
        assert np.isfinite(adassp([[cell]], [1.0], eps=1, delta=1e-6).params).all()


def test_seeded_arrays_are_stamped() -> None:
    rng = np.random.default_rng(0)
    fitted = adassp(rng.normal(size=(9, 2)), np.ones(9), eps=1, delta=1e-6, rng=rng)
    assert "NOT PRIVATE: seeded" in repr(fitted)


def test_large_eps_with_several_draws_does_not_overflow() -> None:
    result = dpreg.dp_select(
        "y ~ x", _flat(), 2000, delta=1e-6, schema=SCHEMA, fit=None, method=dpreg.PCLS(draws=3)
    )
    assert result.spent.eps == 2000


def test_no_step_is_charged_that_is_not_drawn() -> None:
    result = dpreg.dp_select(
        "y ~ x",
        _flat(),
        eps=1,
        delta=1e-6,
        schema=SCHEMA,
        neighbors="add-remove",
        fit=None,
        method=dpreg.PCPL(sigma2="private"),
    )
    assert "number of rows" not in result.budget["step"].tolist()
