"""Signatures of the public calls: types that say something, and names in one place."""

import inspect

import pytest

import dpreg

CALLS = [
    dpreg.dp_ols,
    dpreg.dp_glm,
    dpreg.dp_select,
    dpreg.dp_mean,
    dpreg.dp_quantile,
    dpreg.dp_histogram,
    dpreg.dp_suffstats,
    dpreg.sample_aggregate,
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_every_argument_has_a_type_that_is_not_any(call):
    for name, argument in inspect.signature(call).parameters.items():
        assert argument.annotation not in ("Any", inspect.Parameter.empty), name


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_eps_comes_right_after_the_data_and_delta_after_eps(call):
    names = list(inspect.signature(call).parameters)
    assert names[names.index("data") + 1] == "eps"
    if "delta" in names:
        assert names[names.index("eps") + 1] == "delta"


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_every_argument_is_described_in_the_call_itself(call):
    text = inspect.getdoc(call)
    assert "as in `dp_mean`" not in text.lower()
    for name in inspect.signature(call).parameters:
        described = [line for line in text.splitlines() if " : " in line and not line[0].isspace()]
        assert any(name in line.partition(" : ")[0].split(", ") for line in described), name
