"""Options of methods and families: objects, names and mappings are one; flat arguments warn."""

import inspect

import pandas as pd
import pytest

import dpreg
from dpreg.errors import ArgumentError, DpregDeprecation, DpregWarning
from dpreg.options import RETIRED, grouped, unpacked

ROWS = pd.DataFrame({"x": [k / 200 for k in range(200)], "y": [k / 400 for k in range(200)]})
SCHEMA = {"x": (0, 1), "y": (0, 1)}
CELL = 52311.25
MOST = {"dp_select": 24, "plan": 24}
USUAL = {"method": "auto", "family": None}


def select(**given):
    told = {"schema": SCHEMA, "fit": None, "unsafe_seed": 1, **given}
    return dpreg.dp_select("y ~ x", ROWS, 50, **told)


def test_object_mapping_and_name_are_one_method():
    object_ = select(method=dpreg.PCLS(radius=2, draws=3))
    mapping = select(method={"name": "pcls", "radius": 2, "draws": 3})
    assert object_.to_dict() == mapping.to_dict() | {"record": object_.to_dict()["record"]}
    assert object_.radius == 2
    assert object_.draws == 3
    named, usual = select(method="pcls"), select(method=dpreg.PCLS())
    assert named.selected == usual.selected
    assert named.radius == usual.radius == 1


def test_flat_arguments_do_the_same_and_warn():
    wanted = select(method=dpreg.PCLS(radius=2, penalty=3))
    with pytest.warns(
        DpregDeprecation, match=r"write method=dpreg.PCLS\(radius=..., penalty=...\)"
    ):
        found = select(method="pcls", radius=2, penalty=3)
    assert (found.radius, found.phi, found.models) == (wanted.radius, wanted.phi, wanted.models)
    assert found.record.arguments == wanted.record.arguments
    assert issubclass(DpregDeprecation, DpregWarning)
    assert issubclass(DpregDeprecation, DeprecationWarning)


def test_what_only_the_paper_has_means_pcls_under_auto():
    given = {"radius": 2, "clip": 0.5}
    with pytest.warns(DpregDeprecation):
        grouped("dp_select", given, USUAL)
    assert given == {"method": dpreg.PCLS(radius=2, clip=0.5)}
    given = {"clip": 0.5, "penalty": "auto"}
    with pytest.warns(DpregDeprecation):
        grouped("dp_select", given, USUAL)
    assert given == {"method": dpreg.Auto(clip=0.5)}


@pytest.mark.parametrize("call", RETIRED)
def test_a_retired_argument_is_in_no_signature_and_an_option_of_some_object(call):
    known = inspect.signature(getattr(dpreg, call)).parameters
    assert not set(RETIRED[call]) & set(known)
    assert set(RETIRED[call]) - {"expected_rows"} <= set(unpacked({}))


@pytest.mark.parametrize(
    "name", [one for one in dpreg.__all__ if inspect.isfunction(getattr(dpreg, one))]
)
def test_calls_stay_narrow(name):
    assert len(inspect.signature(getattr(dpreg, name)).parameters) <= MOST.get(name, 20)


def test_expected_rows_warns_and_changes_nothing():
    with pytest.warns(DpregDeprecation, match="leave out expected_rows"):
        given = dpreg.dp_ols("y ~ x", ROWS, 50, schema=SCHEMA, expected_rows=5, unsafe_seed=1)
    plain = dpreg.dp_ols("y ~ x", ROWS, 50, schema=SCHEMA, unsafe_seed=1)
    assert list(given.params) == list(plain.params)


@pytest.mark.parametrize(
    ("call", "given", "said"),
    [
        ("dp_select", {"method": "adaptive", "radius": 2}, 'method="adaptive" has no radius: '),
        ("dp_select", {"exposure": "x"}, "exposure needs family="),
        ("dp_select", {"family": "binomial", "exposure": "x"}, "exposure belongs to Poisson"),
        ("dp_glm", {"family": "poisson", "trials": "x"}, "trials belongs to Binomial"),
        ("dp_ols", {"scaling": "row-norm"}, "scaling belongs to SSP, AdaSSP"),
        ("dp_select", {"method": dpreg.PCLS(), "radius": 2}, "give radius with the other options"),
    ],
)
def test_what_a_method_or_family_has_not_is_refused(call, given, said):
    with pytest.raises(ArgumentError, match=said):
        grouped(call, dict(given), USUAL)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ({"name": "pcls", "radios": CELL}, "no option 'radios'; did you mean 'radius'"),
        ({"radius": CELL}, "its name must be one of 'auto', .* got None"),
        ({"name": [CELL]}, "got a list"),
        (dpreg.Gram(), "method must be one of 'auto', 'adaptive', 'pcls', 'pcpl'; got 'gram'"),
        (dpreg.Poisson(), "method must be one of .*; got 'poisson'"),
        (dpreg.Auto(noise="gaussian"), "noise: a selection takes"),
        (dpreg.PCLS(radius=ROWS), "radius"),
        ([CELL], "got a list"),
    ],
)
def test_a_method_that_is_none_is_refused_without_its_values(method, said):
    with pytest.raises(ArgumentError, match=said) as caught:
        select(method=method)
    assert str(CELL) not in str(caught.value)


def test_a_repr_shows_given_options_and_no_rows():
    assert repr(dpreg.PCLS(radius=2)) == "PCLS(radius=2)"
    assert repr(dpreg.Poisson()) == "Poisson()"
    assert repr(dpreg.PCLS(radius=ROWS)) == "PCLS(radius=a DataFrame)"
    assert dpreg.lei2018.PCPL is dpreg.PCPL
    assert dpreg.PCPL(draws=2).told() == {"name": "pcpl", "draws": 2}
