"""Signatures of the public calls: types that say something, and names in one place."""

import inspect
import re

import pytest

import dpreg
from dpreg.planning import Plan, RegressionPlan
from dpreg.privacy.ledger import Caps, Entry, Verified
from dpreg.results.classic import ClassicResults, HistogramResults
from dpreg.results.contrast import Contrast, Prediction
from dpreg.results.glm import GLMPrediction, GLMResults
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import GLMSelectionResults, SelectionResults
from dpreg.results.summary import Summary
from dpreg.schema import Skeleton
from dpreg.study.results import SelectionStudy
from dpreg.study.simulation import SimulationStudy

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


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_what_a_call_describes_itself_is_described_once(call):
    described = re.findall(r"^(\w+(?:, \w+)*) : ", inspect.getdoc(call), re.MULTILINE)
    names = [name for part in described for name in part.split(", ")]
    assert len(names) == len(set(names))
    assert set(names) >= set(inspect.signature(call).parameters)


KINDS = [
    *(kind for kind in map(dpreg.__dict__.get, dpreg.__all__) if inspect.isclass(kind)),
    *(ClassicResults, GLMResults, HistogramResults, RegressionResults, SelectionResults, Summary),
    *(Contrast, GLMPrediction, Prediction, Plan, SelectionStudy, SimulationStudy),
    *(Caps, Entry, GLMSelectionResults, RegressionPlan, Skeleton, Verified),
]
LOADERS = map(dpreg.datasets.__dict__.get, dpreg.datasets.__all__)
STUDIES = [dpreg.plan, dpreg.plan_glm, dpreg.selection_study, dpreg.simulation_study]
FUNCTIONS = [dpreg.load, dpreg.write_report, *STUDIES, *LOADERS]


def public_parts(kind):
    """The constructor, and every method and property that dpreg gave a class."""
    yield kind.__name__, kind.__init__
    for name in dir(kind):
        part = inspect.getattr_static(kind, name)
        part = getattr(part, "fget", None) or getattr(part, "__func__", part)
        if name.startswith("_") or not inspect.isfunction(part):
            continue
        if part.__module__.startswith("dpreg"):
            yield f"{kind.__name__}.{name}", part


PARTS = {name: part for kind in KINDS for name, part in public_parts(kind)}
PARTS |= {function.__name__: function for function in FUNCTIONS if inspect.isfunction(function)}
SAYS_NOTHING = re.compile(r"^(typing\.)?Any\b|[\[|] *Any *(\||$)|<class 'inspect._empty'>")


def nothing_said(annotation):
    return bool(SAYS_NOTHING.search(str(annotation)))


@pytest.mark.parametrize("name", PARTS)
def test_every_public_argument_and_value_has_a_type(name):
    """A mapping of JSON's own types is as far as a type says what it holds."""
    found = inspect.signature(PARTS[name])
    for argument in [one for one in found.parameters.values() if one.name not in ("self", "cls")]:
        assert not nothing_said(argument.annotation), argument.name
    assert not nothing_said(found.return_annotation)


def test_what_says_nothing_is_found():
    assert nothing_said("Any")
    assert nothing_said("Any | None")
    assert nothing_said("int | Any")
    assert nothing_said(inspect.Parameter.empty)
    assert not nothing_said("dict[str, Any]")
    assert not nothing_said("Anything")
    assert len(PARTS) > 250
