import dataclasses
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpreg
from dpreg.errors import ArgumentError, DataError
from dpreg.privacy.ledger.handle import kept
from dpreg.results.base import from_json, load
from dpreg.results.claim import STAMP, LedgerPosition, ReleaseRecord
from dpreg.results.regression import RegressionResults
from dpreg.results.report import write_report
from dpreg.results.saved import fields_of
from dpreg.results.selection import SelectionResults

texts = st.text(max_size=12)
floats = st.floats(allow_nan=True, allow_infinity=True)
fractions = st.fractions(min_value=0, max_value=10**9)
numbers = fractions | st.floats(allow_nan=False)


@pytest.mark.parametrize("kind", [RegressionResults, SelectionResults])
def test_every_field_has_a_codec(kind):
    assert list(fields_of(kind)) == [field.name for field in dataclasses.fields(kind)]


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("seeded", [False, True])
def test_a_file_gives_an_equal_result(make_selection, tmp_path, fitted, seeded):
    result = make_selection(fitted=fitted, seeded=seeded, draws=4, notes=("a", "b"))
    result.save(tmp_path / "result.json")
    again = load(tmp_path / "result.json")
    assert again == result
    assert hash(again) == hash(result)
    assert str(again) == str(result)
    assert pickle.loads(pickle.dumps(result)) == result
    assert again != make_selection(draws=3)
    assert again != "a string"


def test_a_file_has_one_field_a_line_and_names_format_and_stamp(make_selection, tmp_path):
    make_selection(seeded=True).save(tmp_path / "result.json")
    text = (tmp_path / "result.json").read_text()
    assert text.startswith(
        '{\n"dpreg": "0.2",\n"kind": "selection",\n"stamp": "NOT PRIVATE: seeded"'
    )
    assert len(text.splitlines()) == len(json.loads(text)) + 2
    assert STAMP in json.loads(text)["privacy"]


@pytest.mark.parametrize("write", [SelectionResults.save, write_report])
@pytest.mark.parametrize("name", ["a.csv", "a.json.CSV.gz", "a.pq", "a.parquet", "link"])
def test_no_result_joins_a_table(make_selection, tmp_path, name, write):
    (tmp_path / "link").symlink_to("a.csv")
    with pytest.raises(ArgumentError, match=r"ends like a table's file.*\.parquet, \.pq, \.csv"):
        write(make_selection(), tmp_path / name)
    assert [entry.name for entry in tmp_path.iterdir()] == ["link"]
    write(make_selection(), tmp_path / "a.csv.json")


@pytest.mark.parametrize("write", [SelectionResults.save, write_report])
@pytest.mark.parametrize("name", ["a\0b", 3, b"a.json", None])
def test_what_is_no_path_is_refused_by_an_error_of_dpreg_s(make_selection, name, write):
    with pytest.raises(DataError, match=r"null character|a path must be text"):
        write(make_selection(), name)


@given(
    names=st.lists(texts, unique=True, min_size=1, max_size=4),
    data=st.data(),
    rational=fractions,
    value=floats,
    notes=st.lists(texts, max_size=2),
)
def test_any_regression_survives(make_regression, names, data, rational, value, notes):
    row = st.lists(floats, min_size=len(names), max_size=len(names))
    square = st.lists(row, min_size=len(names), max_size=len(names))
    result = make_regression(
        tuple(names),
        coefficients=data.draw(row),
        covariance=data.draw(square),
        privacy_errors=data.draw(row),
        error_variance=value,
        complete_rows=value,
        eps=rational,
        notes=tuple(notes),
        interval_method="bootstrap",
        interval_draws=data.draw(square),
    )
    again = from_json(result.to_json())
    assert again == result
    np.testing.assert_array_equal(again.coefficients, result.coefficients)
    assert (again.eps, again.notes, again.exog_names) == (rational, tuple(notes), tuple(names))
    json.loads(result.to_json(), parse_constant=pytest.fail)


@given(
    terms=st.lists(texts.filter(lambda t: t != "Intercept"), unique=True, max_size=5),
    number=numbers,
    count=st.integers(1, 10**80),
    nobs=st.none() | st.integers(0, 10**12),
)
def test_any_selection_survives(make_selection, terms, number, count, nobs):
    result = make_selection(
        tuple(terms), draws=3, radius=number, psi=number, sigma2=number, n_models=count, nobs=nobs
    )
    again = from_json(result.to_json())
    assert again == result
    assert (again.radius, again.n_models, again.nobs) == (number, count, nobs)
    assert type(again.radius) is type(number)
    assert again.models == result.models


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(value=junk, data=st.data())
def test_a_damaged_file_is_refused_or_read_never_a_crash(make_selection, value, data):
    whole = make_selection(fitted=True).to_dict()
    place = whole
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(list(keys)))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        place = inner
    place[key] = value
    text = json.dumps(whole)
    try:
        result = from_json(text)
    except ArgumentError:
        return
    assert from_json(result.to_json()) == result
    assert str(result)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "not a saved"),
        ("[1, 2]", "not a saved"),
        ("{}", "lacks"),
        ("[" * 100_000, "not a saved"),
        ('{"dpreg": "0.1", "kind": "selection", "x": NaN}', "NaN is not JSON"),
        ('{"dpreg": "9.0", "kind": "selection"}', "is in format '9.0'.*'0.2'"),
        ('{"dpreg": "0.0", "kind": "selection"}', "is in format '0.0'"),
        ('{"dpreg": ["x"], "kind": "selection"}', "is in format"),
        ('{"dpreg": "0.1", "kind": "casserole"}', "casserole"),
        ('{"dpreg": "0.1", "kind": ["selection"]}', "kind"),
        ('{"dpreg": "0.1", "kind": "selection"}', "nobs must be there"),
        ('{"dpreg": "0.1", "kind": "selection", "extra": 1}', "unknown fields 'extra'"),
    ],
)
def test_what_is_not_a_result_is_refused(text, match):
    with pytest.raises(ArgumentError, match=match):
        from_json(text)


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (["eps"], 1, "eps must be an exact number"),
        (["eps"], "1e999999999", "eps must be an exact number"),
        (["eps"], "9" * 10_000, "eps must be an exact number"),
        (["eps"], "1/0", "eps must be"),
        (["n_models"], 8, "n_models must be a whole number as text"),
        (["nobs"], 2.5, "nobs must be a whole number"),
        (["center"], 1, "center must be true or false"),
        (["models"], ["lat"], "models must be a list"),
        (["columns", "lat"], None, "columns.lat must be a list"),
        (["claim", "seeded"], "no", "claim.seeded must be true or false"),
        (["claim", "neighbors"], "hamming", "claim must be right .neighbors"),
        (["claim", "spends", 0, "eps"], "-1", "claim.spends must be right .*eps"),
        (["regression", "covariance", 0], [1.0], "covariance must be an array"),
        (["regression", "coefficients"], [1.0], "coefficients does not match"),
        (["regression", "scaling"], None, "scaling must be text"),
        (["schema", "price"], ["a"], "schema must be a schema"),
        (["schema"], "/etc/passwd.json", "schema must be a schema"),
    ],
)
def test_a_damaged_field_is_named(make_selection, path, value, match):
    payload = make_selection(fitted=True).to_dict()
    place = payload
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ArgumentError, match=match):
        from_json(json.dumps(payload))


def test_a_kind_reads_only_itself(make_regression):
    with pytest.raises(ArgumentError, match="'regression' result, not a 'selection'"):
        SelectionResults.from_json(make_regression().to_json())


def test_a_file_of_other_bytes_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="UTF-8"):
        load(tmp_path / "x")
    with pytest.raises(DataError, match="no file"):
        load(tmp_path / "absent")


def test_results_of_0_1_load(make_selection):
    payload = make_selection(fitted=True).to_dict()
    payload["dpreg"] = "0.1"
    del payload["record"], payload["regression"]["record"]
    payload["regression"]["dpreg"] = "0.1"
    old = from_json(json.dumps(payload))
    assert old.record is None
    assert old == make_selection(fitted=True)


def test_a_record_survives_and_makes_no_two_results_differ(make_regression):
    position = LedgerPosition(
        ledger="ab", entry=3, head="3:" + "0" * 64, cap_eps="1", cap_delta="0", spent_eps="1/3",
        spent_delta="0",
    )  # fmt: skip
    record = ReleaseRecord(
        call="dp_ols",
        when="2026-11-23T18:04+00:00",
        arguments={"eps": "1", "keep": ["a"]},
        ledger=position,
    )
    result = dataclasses.replace(make_regression(), record=record)
    again = from_json(result.to_json())
    assert again.record == record
    assert pickle.loads(pickle.dumps(result)).record == record
    assert again == make_regression()
    assert hash(again) == hash(make_regression())
    for damage in ({"when": "noon"}, {"versions": []}, {"arguments": 1}, {"ledger": {}}):
        payload = result.to_dict()
        payload["record"].update(damage)
        with pytest.raises(ArgumentError, match=r"record"):
            from_json(json.dumps(payload))


def test_the_stamp_in_a_file_cannot_be_edited_away(make_selection):
    payload = make_selection(seeded=True).to_dict()
    payload.update(stamp=None, privacy="Perfectly private.")
    assert STAMP in str(from_json(json.dumps(payload)))


def test_a_loaded_result_predicts_from_formula_and_schema(make_regression, tmp_path):
    result = make_regression(
        ("Intercept", "lat"), formula="price ~ lat", design_formula="price ~ lat + bsqft",
        clip="0.5",
    )  # fmt: skip
    result.save(tmp_path / "r.json")
    table = pd.DataFrame({"lat": [1.0, 40.0], "bsqft": [2.0, np.nan]})
    expected = result.coefficients[0] + result.coefficients[1] * table["lat"]
    for again in (result, load(tmp_path / "r.json"), pickle.loads(pickle.dumps(result))):
        np.testing.assert_allclose(again.predict(table), expected)
    strange = make_regression(("Intercept", "lat"), formula="price ~ age")
    with pytest.raises(ArgumentError, match="not columns of the design"):
        strange.predict(table)


def test_a_charge_is_noted_by_all_who_asked_around_it():
    ledger = dpreg.Ledger(dpreg.Budget(9))
    with kept() as outer:
        ledger.charge(dpreg.Budget(1), "one")
        with kept() as inner:
            ledger.charge(dpreg.Budget(2), "two")
        assert len(inner) == 1
        ledger.charge(dpreg.Budget(3), "three")
    ledger.charge(dpreg.Budget(1), "four")
    assert len(inner) == 1
    assert len(outer) == 3
