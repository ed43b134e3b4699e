"""What released numbers say of a result: when a note is told, and how severe it is."""

from fractions import Fraction

import numpy as np

import dpreg

SCHEMA = {"price": (0, 900), "age": (0, 120), "town": ["ash", "elm", "oak"]}


def sold(rows=4000, town=("ash", "elm", "oak"), chances=None):
    rng = np.random.default_rng(4)  # of its own: the tests may run in any order
    age = rng.uniform(0, 120, rows)
    towns = rng.choice(town, rows, p=chances)
    noise = rng.normal(0, 20, rows)
    return {"age": age, "town": towns, "price": 100 + 3 * age + 50 * (towns == "elm") + noise}


def test_few_complete_rows_ask_for_the_levels():
    schema = {**SCHEMA, "town": ["Ash", "Elm", "Oak"]}
    call = {"eps": 5, "method": "gram", "unsafe_seed": 1}
    fit = dpreg.dp_ols("price ~ age + town", sold(), schema=schema, **call)
    assert any(
        "complete rows of 4,000: do the schema's levels match the data" in remark
        for remark in fit.remarks
    )
    assert "do the schema's levels match the data" in " ".join(str(fit).split())
    right = dpreg.dp_ols("price ~ age + town", sold(), schema=SCHEMA, **call)
    assert not any("complete rows" in remark for remark in right.remarks)


def test_a_misspelt_level_that_costs_a_third_of_the_rows_is_asked_for():
    # Half of the rows are asked for whatever the noise of their number.
    schema = {**SCHEMA, "town": ["ash", "elm", "Oak"]}
    fit = dpreg.dp_ols(
        "price ~ age + town", sold(20_000), 1, schema=schema, delta=1e-6, unsafe_seed=1
    )
    asked = "of 20,000: do the schema's levels match the data, letter by letter?"
    assert asked in " ".join(str(fit).split())
    small = dpreg.dp_ols(
        "price ~ age + town", sold(900), 1, schema=SCHEMA, delta=1e-6, unsafe_seed=1
    )
    assert not any("complete rows" in remark for remark in small.remarks)


def test_half_of_the_rows_are_all_that_a_split_fit_may_have():
    call = {"eps": 50, "method": "pcls", "fit": "split", "unsafe_seed": 1}
    found = dpreg.dp_select("price ~ age + town", sold(), schema=SCHEMA, **call)
    assert not any("complete rows" in remark for remark in found.remarks)
    schema = {**SCHEMA, "town": ["Ash", "Elm", "Oak"]}
    none = dpreg.dp_select(
        "price ~ age + town", sold(), schema=schema, keep=("Intercept", "town"), **call
    )
    assert any("complete rows of 2,000: do the schema's levels" in one for one in none.remarks)


def test_nothing_is_said_of_gaps_where_the_number_of_rows_is_private(make_regression):
    assert not make_regression(complete_rows=6.0, nobs=None).remarks
    (said,) = make_regression(complete_rows=6.0, nobs=20640).remarks
    assert said.startswith("About 6 complete rows of 20,640: do the schema's levels match the data")


def test_a_rare_level_that_made_the_fit_ridged_is_named():
    data = sold(20_000, chances=[0.6, 0.3995, 0.0005])
    call = {"schema": SCHEMA, "method": "gram", "unsafe_seed": 1}
    fit = dpreg.dp_ols("price ~ age + town", data, eps=1, **call)
    assert fit.ridged
    assert dict(fit.weak) == {"town[T.oak]": "rare level"}
    (said,) = (remark for remark in fit.remarks if "ridged" in remark)
    assert "town[T.oak]" in said
    assert "Merge them with another level" in said
    common = dpreg.dp_ols("price ~ age + town", sold(20_000), eps=5, **call)
    assert not common.ridged
    assert not common.weak


def test_a_residual_as_wide_as_the_schema_is_told(make_regression):
    fit = make_regression(error_variance=400.0**2)
    assert any("The residual sd, 400, is about half the declared range" in r for r in fit.remarks)
    assert not make_regression(error_variance=100.0**2).remarks


def test_a_z_in_the_thousands_asks_for_a_copy(make_regression):
    names = ("Intercept", "lat")
    fit = make_regression(names, coefficients=[9.0, 5.0], covariance=np.diag([1e-8, 1e-8]))
    (said,) = fit.remarks
    assert said.startswith("z is in the thousands for lat: is it a copy of price")


def test_intervals_beyond_the_response_are_told(make_regression):
    names = ("Intercept", "lat", "age")
    fit = make_regression(
        names, covariance=np.diag([1.0, 200.0**2, 1.0]), column_widths=np.array([1.0, 9.0, 9.0])
    )
    (said,) = fit.remarks
    assert said.startswith("Nothing is known of lat: the intervals allow effects as large as")


def test_a_mean_at_the_end_of_its_bounds_is_told():
    ages = {"age": np.random.default_rng(4).uniform(0, 2, 5000)}
    call = {"eps": 10, "unsafe_seed": 1}
    found = dpreg.dp_mean("age", ages, bounds=(0, 120), **call)
    assert any("at an end of the declared range of age (0 to 120)" in r for r in found.remarks)
    assert not dpreg.dp_mean("age", ages, bounds=(0, 2), **call).remarks
    clipped = dpreg.dp_quantile("age", 0.9, ages, bounds=(-5, 0.5), **call)
    assert any("Values outside are clipped" in remark for remark in clipped.remarks)


def test_a_null_selection_says_what_it_does_not_say(make_selection):
    none = make_selection(models=[("Intercept",)], reported=("Intercept",), psi=1.0)
    said = " ".join(none.remarks)
    assert "No candidate was selected. With 20,190 rows and eps = 1" in said
    assert "it does not say that there is none" in said
    assert "dpreg.plan()" in said
    some = make_selection(models=[("Intercept", "lat")], reported=("Intercept", "lat"), psi=1.0)
    assert "No candidate" not in " ".join(some.remarks)


def test_97_men_are_told_that_they_are_few():
    """What README says of the prostate data, here with as many rows of noise."""
    rng = np.random.default_rng(4)
    rows = {name: rng.uniform(-1, 1, 97) for name in "yab"}
    schema = dict.fromkeys("yab", (-1, 1))
    call = {"schema": schema, "method": "pcls", "keep": (), "fit": None}
    few = dpreg.dp_select("y ~ a + b", rows, eps=1, **call)
    assert any(
        remark.startswith("97 rows are few for eps = 1: a term pays") for remark in few.remarks
    )
    assert "97 rows are few for eps = 1" in " ".join(str(few).split())
    enough = dpreg.dp_select("y ~ a + b", rows, eps=100, **call)
    assert not any("rows are few" in remark for remark in enough.remarks)


def test_a_radius_that_may_bind_says_what_to_do(make_selection, make_regression):
    """Nothing says to buy eps where the radius is the cause."""
    unknown = make_selection(radius_source="default", psi=1.0)
    (said,) = (remark for remark in unknown.remarks if "radius" in remark)
    assert "whatever eps is: give a larger radius=" in said
    names = ("Intercept", "lat")
    for slope, binds in ((10.0, False), (44.0, True)):
        fit = make_regression(
            names, fit="split", column_widths=np.array([1.0, 9.0]), coefficients=[1.0, slope]
        )
        found = make_selection(regression=fit, radius=Fraction(1), psi=1.0)
        told = [remark for remark in found.remarks if "radius" in remark]
        assert bool(told) == binds
        assert not binds or "the radius may have bound" in told[0]
    given = make_selection(radius_source="given", psi=1.0)
    assert not any("radius" in remark for remark in given.remarks)


def test_what_a_note_says_of_weak_coefficients_is_not_said_twice(make_regression):
    weak = {"lat": "hidden direction", "county[T.cc]": "rare level"}
    note = "Weakly determined: lat, county[T.cc]. The noise hides a direction."
    told = str(make_regression(weak=weak, notes=(note,)).summary(full=True))
    assert told.count("hidden direction") == 0
    assert told.count("Weak:     county[T.cc] (rare level)") == 1
    told = str(make_regression(weak=weak).summary(full=True))
    assert "Weak:     lat (hidden direction); county[T.cc] (rare level)" in told
    hidden = make_regression(weak={"lat": "hidden direction"}, notes=(note,))
    assert "Weak:" not in str(hidden.summary(full=True))
