"""What a review before the talk found, each kept from coming back: wrong arguments, far numbers."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import ArgumentError
from dpreg.privacy.budget import Budget

VALUES = np.linspace(0, 1, 50)
DATA = pd.DataFrame({"x": VALUES, "y": VALUES, "g": ["u", "v"] * 25})
SCHEMA = {"x": (0, 1), "y": (0, 1), "g": ["u", "v"]}
FORMULA = "y ~ x"
NEIGHBORS = ("replace-one", "add-remove")


def refused_uncharged(call: Callable[..., object], match: str, **arguments: Any) -> None:
    ledger = dpreg.Ledger(Budget(Fraction(10**400), Fraction(1, 2)))
    with pytest.raises(ArgumentError, match=match):
        call(**arguments, budget=ledger)
    assert ledger.spent == Budget(Fraction(0))


# ---- refused only after the charge ----


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("eps", ["1e-6", "2e-6"])
def test_a_quantile_with_too_small_an_eps_is_not_charged(
    neighbors: str, by: str | None, eps: str
) -> None:
    arguments = {"x": "x", "q": 0.5, "data": DATA, "schema": SCHEMA, "by": by}
    refused_uncharged(
        dpreg.dp_quantile,
        "eps is too small",
        eps=eps,
        contributions=10**6,
        neighbors=neighbors,
        **arguments,
    )


@pytest.mark.parametrize("alpha", ["1e-390", "0." + "9" * 30])
def test_a_level_that_no_float_can_hold_is_not_charged(alpha: str) -> None:
    arguments = {"x": VALUES, "q": 0.5, "bounds": (0, 1), "eps": 1}
    refused_uncharged(dpreg.dp_quantile, "alpha must", alpha=alpha, **arguments)


@pytest.mark.parametrize("bounds", [(1e-100, 1e-100 * (1 + 1e-13)), (1, 1 + 1e-13)])
def test_private_bins_without_room_in_float64_are_not_charged(bounds: tuple[float, float]) -> None:
    refused_uncharged(dpreg.dp_histogram, "bins", x=VALUES, bounds=bounds, eps=1)


@pytest.mark.parametrize("progress", ["x", 1, 0, []])
@pytest.mark.parametrize("name", ["mean", "suffstats", "quantile", "histogram", "ols", "select"])
def test_progress_that_is_no_truth_is_not_charged(name: str, progress: object) -> None:
    arguments: dict[str, Any] = {"data": DATA, "schema": SCHEMA, "eps": 1, "progress": progress}
    if name in ("ols", "select"):
        arguments["formula"] = FORMULA
    else:
        arguments |= {"x": "x"} | ({"q": 0.5} if name == "quantile" else {})
    refused_uncharged(getattr(dpreg, f"dp_{name}"), "progress", **arguments)


@pytest.mark.parametrize("alpha", ["1e-390", "1e-250", True, "many"])
def test_an_expected_number_that_is_too_small_is_not_charged(alpha: object) -> None:
    arguments = {"formula": FORMULA, "data": DATA, "schema": SCHEMA, "eps": 1}
    refused_uncharged(dpreg.dp_select, "false_inclusions", false_inclusions=alpha, **arguments)


# ---- other exceptions than the package's own ----


@pytest.mark.parametrize("bins", [10**6 + 1, 10**12, 10**20, "1e300"])
def test_too_many_bins_are_refused(bins: object) -> None:
    refused_uncharged(dpreg.dp_histogram, "bins", x=VALUES, bounds=(0, 1), bins=bins, eps=1)


@pytest.mark.parametrize("share", [0.02, "0.001"])
def test_a_width_share_that_cannot_pay_for_the_count_is_named(share: object) -> None:
    arguments = {"x": VALUES, "bounds": (0, 1), "eps": 1, "neighbors": "add-remove"}
    refused_uncharged(dpreg.dp_histogram, "width_share", width_share=share, **arguments)


@pytest.mark.parametrize("asked", [np.array(0.5), np.float32(0.5), np.array([[0.5]]), ("1/2",)])
def test_quantiles_come_as_any_array(asked: Any) -> None:
    found = dpreg.dp_quantile(VALUES, asked, bounds=(0, 1), eps=10**6)
    assert list(found.params.index) == ["q0.5"]
    assert abs(found.params.iloc[0] - 0.5) < 0.1


@pytest.mark.parametrize("keep", [5, None, 0.5, [1]])
def test_keep_must_hold_names(keep: Any) -> None:
    arguments = {"formula": FORMULA, "data": DATA, "schema": SCHEMA, "eps": 1}
    refused_uncharged(dpreg.dp_select, "keep", keep=keep, **arguments)
    with pytest.raises(ArgumentError, match="keep"):
        dpreg.selection_study(keep=keep, **arguments)


@pytest.fixture(scope="module")
def results() -> list[Any]:
    grouped = {"schema": SCHEMA, "by": "g", "eps": 1}
    ols = dpreg.dp_ols(FORMULA, DATA, eps=1, schema=SCHEMA)
    select = [
        dpreg.dp_select(FORMULA, DATA, eps=1, schema=SCHEMA, fit=fit, method="pcls")
        for fit in ("split", None)
    ]
    return [
        dpreg.dp_mean("x", DATA, **grouped),
        dpreg.dp_quantile(VALUES, 0.5, bounds=(0, 1), eps=1, alpha=0.1),
        dpreg.dp_histogram(VALUES, bounds=(0, 1), bins=4, eps=1),
        dpreg.dp_histogram("x", DATA, bins=4, **grouped),
        ols,
        *select,
        ols.t_test("x = 0"),
        ols.get_prediction(DATA),
    ]


def _views(result: Any) -> list[Callable[..., object]]:
    names = ["conf_int", "summary", "summary_frame"]
    if type(result).__name__ in ("HistogramResults", "RegressionResults"):
        names.append("plot")
    if getattr(result, "regression", ()) is None:
        names = ["summary"]  # without coefficients, intervals are refused as not released
    return [getattr(result, name) for name in names if hasattr(type(result), name)]


@pytest.mark.parametrize("alpha", ["x", ".05", None, [0.1], True, 0, 1, -1, float("nan"), 1j])
def test_a_level_must_be_a_number_between_0_and_1(results: list[Any], alpha: object) -> None:
    pytest.importorskip("matplotlib").use("agg")
    for view in (view for result in results for view in _views(result)):
        with pytest.raises(ArgumentError, match="alpha must"):
            view(alpha=alpha)


@pytest.mark.parametrize("alpha", [np.float32(0.25), Decimal("0.25"), Fraction(1, 4)])
def test_a_level_may_be_any_real_number(results: list[Any], alpha: object) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    for view in (view for result in results for view in _views(result)):
        found, plain = view(alpha=alpha), view(alpha=0.25)
        if isinstance(found, pd.DataFrame):
            pd.testing.assert_frame_equal(found, plain)
    plt.close("all")


# ---- studies ----

SMALL = {"beta": (1, 0), "n": 50, "radius": 1, "eps": 1, "datasets": 3, "penalty": (0.1,)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("beta", value) for value in ("abc", [[1, 2], [3]], {"a": 1}, [1j, 1], None, [10**400])),
        *(("beta", value) for value in ([1e300, 1], [True, False], [[1, 2]])),
        *(("penalty", value) for value in ("auto", (None,), True, (True,), "1e390", [[0.1]])),
        *((name, value) for name in ("eps", "radius", "sigma", "bound") for value in ("1e390",)),
        *((name, value) for name in ("eps", "radius", "sigma", "bound") for value in ("1e300",)),
        *((name, value) for name in ("radius", "sigma", "bound") for value in ("1e-390", "1e-200")),
        ("bound", [np.array([1, 2])]),
        ("false_inclusions", "1e-390"),
        *(("empty", value) for value in ("x", 1, None)),
        *(("progress", value) for value in ("x", 1)),
    ],
)
def test_a_simulation_study_refuses_by_the_argument_s_name(name: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=name):
        dpreg.simulation_study(**(SMALL | {name: value}))


@pytest.mark.parametrize("mechanism", ["laplace", "permute-and-flip", "exponential"])
@pytest.mark.parametrize("far", [1, -1])
def test_a_simulation_study_holds_at_the_ends_of_what_it_takes(mechanism: str, far: int) -> None:
    end = Fraction(10) ** (30 * far)
    for names in (("eps",), ("radius",), ("sigma",), ("bound",), ("eps", "radius", "bound")):
        settings = SMALL | {"mechanism": mechanism, "false_inclusions": "1e-200"}
        study = dpreg.simulation_study(**settings | dict.fromkeys(names, end))
        assert study.proportions["right"].between(0, 1).all()
    study = dpreg.simulation_study(**SMALL | {"false_inclusions": "1e390"})
    assert study.proportions["right"].between(0, 1).all()


@pytest.mark.parametrize(("name", "value"), [("eps", "1e300"), ("eps", 0), ("penalty", "1e390")])
def test_a_selection_study_refuses_numbers_beyond_a_table(name: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=name):
        dpreg.selection_study(FORMULA, DATA, schema=SCHEMA, **{name: value})
    dpreg.selection_study(
        FORMULA, DATA, schema=SCHEMA, eps=("1e6", "1e-3"), method=dpreg.PCLS(penalty=(0, 10**30))
    )


def test_a_selection_study_refuses_a_progress_that_is_no_truth() -> None:
    with pytest.raises(ArgumentError, match="progress"):
        dpreg.selection_study(FORMULA, DATA, schema=SCHEMA, progress="x")  # type: ignore[arg-type]


# ---- an eps beyond all use ----


@pytest.mark.parametrize("eps", ["1e5", "1e6"])
def test_a_huge_eps_is_as_good_as_no_noise(eps: str) -> None:
    exact = float(VALUES.mean())
    near = pytest.approx(exact, abs=40 / len(VALUES) / float(eps))  # 40 scales: once in e^40
    assert dpreg.dp_mean(VALUES, bounds=(0, 1), eps=eps).params.iloc[0] == near
    dpreg.dp_quantile(VALUES, 0.5, bounds=(0, 1), eps=eps)
    for noise in ("matrix-laplace", "gaussian", "laplace"):
        ols = dpreg.dp_ols(
            FORMULA, DATA, eps=eps, delta=1e-6, schema=SCHEMA, method=dpreg.Auto(noise=noise)
        )
        assert ols.params["x"] == pytest.approx(1, abs=1e-3)
    dpreg.dp_select(FORMULA, DATA, eps=eps, schema=SCHEMA, method="pcpl", delta=1e-6)
    for mechanism in ("permute-and-flip", "exponential", "laplace"):
        with pytest.warns(dpreg.errors.DpregWarning, match="leaves out"):
            found = dpreg.dp_select(
                FORMULA, DATA, eps=eps, schema={}, fit=None, method=dpreg.PCLS(mechanism=mechanism)
            )
        assert found.selected == ["Intercept", "x"]
