"""Who pays for what, and what is refused, before a row is read."""

from fractions import Fraction
from functools import partial

import pandas as pd
import pytest
from oracles.neighbours import DEFAULTS

from dpreg.api.context import Context
from dpreg.api.select import ByPaper
from dpreg.errors import ArgumentError, SchemaError
from dpreg.request import SelectionRequest
from dpreg.schema import Schema
from dpreg.selection.space import design_of
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

SCHEMA = {"a": (-1, 1), "b": (-1, 1), "y": (-1, 1)}
PLAIN = {
    "formula": "y ~ a + b",
    "eps": 1,
    "keep": ("Intercept",),
    "penalty": "auto",
    "engine": "auto",
}
EMPTY = pd.DataFrame({name: pd.Series(dtype=float) for name in "aby"})


def opened(schema=SCHEMA, **changes):
    """The lines of the bounds, the preparation, and the account."""
    request = SelectionRequest.of({**DEFAULTS, **PLAIN, **changes})
    known = Reader(as_source(EMPTY)), Schema.from_any(schema)
    context = Context.of(request, known, request.formula, partial(design_of, request))
    way = ByPaper(context=context, request=request, shown=False, asked=request.fit)
    account = request.account()
    return *way.open(account), account


def prepared(**changes):
    return opened(**changes)[1]


def costs(preparation, bounds=()):
    """Step, eps, delta and rows of each part that was opened."""
    parts = dict(preparation.parts)
    last = [parts.pop("fit")] if "fit" in parts else []
    listed = [*bounds, *parts.values(), *preparation.draws, *last]
    return [(one.line.step, one.cost.eps, one.cost.delta, one.line.rows) for one in listed]


def test_a_plain_call_buys_the_selection_alone():
    assert costs(prepared(fit=None)) == [("selection", 1, 0, "all")]


def test_halves_may_spend_the_whole_each():
    assert costs(prepared(fit="split")) == [
        ("selection", 1, 0, "half 1"),
        ("coefficients", 1, 0, "half 2"),
    ]


def test_sharing_divides_what_is_left():
    assert costs(prepared(fit="share", radius="private", sigma2="private")) == [
        ("radius", Fraction(1, 10), 0, "all"),
        ("residual variance", Fraction(1, 20), 0, "all"),
        ("selection", Fraction(17, 40), 0, "all"),
        ("coefficients", Fraction(17, 40), 0, "all"),
    ]


def test_the_bound_on_residuals_is_a_part_of_what_is_left_to_select_with():
    asked = {"method": "pcpl", "delta": "1e-6", "neighbors": "add-remove", "fit": "split"}
    assert costs(prepared(**asked)) == [
        ("number of rows", Fraction(1, 50), 0, "all"),
        ("bound on the residuals", Fraction(49, 50) * Fraction(3, 20), Fraction("1e-6"), "half 1"),
        ("selection", Fraction(49, 50) * Fraction(17, 20), 0, "half 1"),
        ("coefficients", Fraction(49, 50), Fraction("1e-6"), "half 2"),
    ]


@pytest.mark.parametrize(
    ("fit", "contributions", "each"),
    [("split", 1, "1e-6"), ("split", 2, "0.5e-6"), ("share", 1, "0.5e-6")],
)
def test_halves_share_delta_where_a_person_may_be_in_both(fit, contributions, each):
    _, plan, account = opened(
        fit=fit, contributions=contributions, draws=40, mechanism="exponential", delta="1e-6", eps=8
    )
    assert plan.parts["fit"].cost.delta == Fraction(each)
    assert 0 < plan.plan.cost.delta <= Fraction(each)
    assert account.total.delta <= Fraction("1e-6")


def test_bounds_share_their_share():
    bounds, preparation, _ = opened(schema={"a": (-1, 1)}, fit=None)
    assert tuple(bounds) == ("y", "b")
    assert costs(preparation, bounds.values()) == [
        ("bounds of y", Fraction(1, 20), 0, "all"),
        ("bounds of b", Fraction(1, 20), 0, "all"),
        ("selection", Fraction(9, 10), 0, "all"),
    ]


def test_each_draw_has_a_part():
    parts = prepared(draws=5, fit=None).draws
    assert [part.cost.eps for part in parts] == [Fraction(1, 5)] * 5


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"shares": {"radius": "0.1"}}, "radius, which this call does not need"),
        ({"eps": "1e-6", "contributions": 10**6}, "eps is too small"),
        ({"engine": "tree", "mechanism": "laplace"}, "permute-and-flip"),
        ({"radius": "private", "shares": {"radius": "0.5"}, "fit": "share", "eps": "1e-9"}, "eps"),
    ],
)
def test_what_cannot_be_paid_for_is_refused(asked, says):
    with pytest.raises(ArgumentError, match=says):
        prepared(**asked)


def test_a_factor_that_bought_bounds_might_not_allow_is_refused():
    with pytest.raises(SchemaError, match="declare"):
        prepared(formula="y ~ np.log(a) + b", schema={"y": (-1, 1)})


def test_public_estimates_add_up_to_the_call():
    for asked in (
        {"fit": "share", "radius": "private", "sigma2": "private"},
        {"fit": "split", "method": "pcpl", "delta": "1e-6", "radius": "private"},
        {"fit": None, "draws": 7},
    ):
        assert opened(**asked)[2].total.eps == 1
    assert opened(fit=None, schema={"a": (-1, 1)})[2].total.eps == 1
