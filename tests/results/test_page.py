"""What stands on a page, before it is drawn: one screen, and all of it."""

from fractions import Fraction

import numpy as np
import pytest

import dpreg
from dpreg.results import notes
from dpreg.results.page import page
from dpreg.results.summary import Facts, Grid, Paragraph
from dpreg.results.tables import marks


def of(result, label, *, full=False, alpha=0.05):
    """Return the text of a paragraph of a page; None where there is none."""
    blocks = page(result, alpha, full=full).blocks
    texts = [b.text for b in blocks if isinstance(b, Paragraph) and b.label == label]
    assert len(texts) <= 1
    return texts[0] if texts else None


def grids(report):
    return [block for block in report.blocks if isinstance(block, Grid)]


# One screen.


@pytest.fixture
def eight(make_regression):
    """Return a fit of eight slopes, of which three are not significant."""
    names = ("Intercept", *(f"slope_{j}" for j in range(8)))
    values = [9.0, 5, 5, 5, 5, 5, 0.1, -0.2, 1]

    def make(**more):
        told = {"coefficients": values, "covariance": np.eye(9), "complete_rows": 20150.4, **more}
        formula = "price ~ " + " + ".join(names[1:])
        return make_regression(names, **{"formula": formula, **told})

    return make


def test_a_summary_of_eight_coefficients_has_at_most_38_lines(eight):
    for seeded in (False, True):
        text = eight(seeded=seeded).summary().as_text()
        assert len(text.splitlines()) <= 38
        assert max(map(len, text.splitlines())) == 78
    assert len(str(eight(weak={"slope_1": "wide: it may differ"}, method="adaptive"))) < 38 * 79


def test_ordinary_screens_have_at_most_30_lines_beside_the_table(make_selection, eight):
    fit = eight()
    columns = {name: (name,) for name in ("Intercept", *(f"slope_{j}" for j in range(8)))}
    chosen = make_selection(
        tuple(columns)[1:], models=[tuple(columns)], reported=tuple(columns), regression=fit
    )
    for result in (fit, chosen, make_selection(draws=3)):
        (grid,) = grids(page(result, 0.05))
        assert len(str(result).splitlines()) - len(grid.rows) <= 30


def test_a_screen_says_rows_cost_marks_and_where_the_rest_is(eight):
    fit = eight(notes=("A plain remark.",))
    assert of(fit, "Found") == (
        "5 of 8 coefficients differ from 0 at the 5% level: slope_0, slope_1, slope_2, slope_3 and "
        "slope_4."
    )
    assert of(fit, "Rows") == "about 20,150 of 20,190 used, about 40 left out (a noisy count)."
    assert of(fit, "Cost") == "eps = 1 for each person (one row, replace-one)."
    assert of(fit, "mark").startswith("0 = not significant at the 5% level")
    assert "one residual variance" in of(fit, "Assumes")
    assert "public" in of(fit, "Privacy")
    assert of(fit, "Details").startswith("summary(full=True) has 3 more notes; .trace")
    assert of(fit, "Unclear") is None
    assert "A plain remark." not in str(fit)
    assert "A plain remark." in str(fit.summary(full=True))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"complete_rows": None}, "20,190; how many of them lack a value was not released."),
        ({"complete_rows": None, "nobs": None}, "private."),
        ({"complete_rows": 12.4, "nobs": None}, "about 12 used (a noisy count); their number is"),
        ({"complete_rows": 30000.0}, "about 20,190 of 20,190 used, about 0 left out"),
        ({"complete_rows": -5.0}, "about 0 of 20,190 used, about 20,190 left out"),
        ({"fit": "split", "complete_rows": 90.0}, "about 90 of 10,095 held out used, about 10,005"),
    ],
)
def test_a_screen_says_how_many_rows_were_left_out_as_far_as_was_released(eight, more, told):
    assert of(eight(**more), "Rows").startswith(told)


def test_the_noise_column_is_its_share_of_the_variance(eight):
    fit = eight(sampling_errors=np.full(9, 0.8), privacy_errors=np.full(9, 0.6))
    (grid,) = grids(page(fit, 0.05))
    assert grid.headers[-2:] == ("noise", "mark")
    assert {row[-2] for row in grid.rows} == {"36%"}
    assert fit.noise_share.tolist() == pytest.approx([0.36] * 9)
    assert "sampling" not in " ".join(grid.headers)


def test_a_mark_is_a_letter_and_is_explained_once(eight):
    weak = {"slope_0": "wide: it may differ", "slope_7": "too few rows to say", "slope_6": "odd"}
    fit = eight(weak={**weak, "slope_2": "narrow: rows count less"}, method="adaptive")
    letters = ["".join(each.values()) for each in marks(fit, 0.05)]
    assert letters == ["", "w", "", "n", "", "", "0", "0*", "0?"]
    said = of(fit, "mark")
    for told in ("w = wide: it may differ", "? = too few rows to say", "* = odd"):
        assert said.count(told) == 1
    assert not any(marks(eight(coefficients=np.full(9, 9.0)), 0.05))
    assert of(eight(coefficients=np.full(9, 9.0)), "mark") is None


def test_severe_notes_are_shown_whole_and_the_others_counted(eight):
    severe = "Weakly determined: slope_0. The noise hides a direction."
    fit = eight(complete_rows=6.0, notes=(severe, "A plain remark."))
    warned = [b.text for b in page(fit, 0.05).blocks if getattr(b, "label", "") == "Warning"]
    assert [text[:15] for text in warned] == ["About 6 complet", severe[:15]]
    assert of(fit, "Details").startswith("summary(full=True) has 3 more notes;")
    assert "A plain remark." not in str(fit)


def test_a_severe_note_of_few_rows_is_printed_with_the_estimate():
    """A mean of three rows is -73223 or so: what is printed must say that it means nothing."""
    found = dpreg.dp_mean("x", {"x": [1.0, 2.0, 3.0]}, bounds=(-1e6, 1e6), eps=1, unsafe_seed=1)
    severe = [note for note in notes.of(found) if note.severe]
    assert severe
    for note in severe:
        assert note.text in " ".join(str(found).split())


def test_numbers_that_are_noise_alone_are_printed_with_a_warning(eight):
    hidden = eight(
        covariance=np.full((9, 9), np.nan), method="adaptive",
        weak=dict.fromkeys(eight().exog_names, "too few rows to say"),
    )  # fmt: skip
    (grid,) = grids(page(hidden, 0.05))
    assert grid.headers == ("", "coef", "mark")
    assert {row[-1] for row in grid.rows} == {"?"}
    assert of(hidden, "Warning").startswith("The noise hides Intercept, slope_0, slope_1, slope_2")
    some = eight(weak={"slope_1": "too few rows to say"}, method="adaptive")
    assert of(some, "Warning").startswith("The noise hides slope_1: rows are too few")
    assert of(eight(method="adaptive"), "Warning") is None


def test_a_term_that_was_found_and_is_not_told_from_zero_is_said_so_once(
    make_selection, make_regression
):
    fit = make_regression(
        ("Intercept", "bsqft", "lat"), coefficients=[0, 5, 1], covariance=np.eye(3), fit="fresh"
    )
    chosen = ("Intercept", "bsqft", "lat")
    result = make_selection(models=[chosen], reported=chosen, regression=fit)
    assert of(result, "Found") == "bsqft and lat."
    (grid,) = grids(page(result, 0.05))
    assert [row[-1] for row in grid.rows] == ["", "", "0"]
    for full in (False, True):
        text = " ".join(result.summary(full=full).as_text().split())
        assert len([words for words in ("does not tell", "not significant") if words in text]) == 1


# LaTeX and frames: the columns of a paper.


def test_latex_and_frames_have_the_three_columns_of_a_paper(eight, make_selection):
    fit = eight()
    assert list(fit.to_frame().columns) == ["coef", "std err", "interval"]
    low, high = fit.conf_int(0.1).T.to_numpy()
    ends = fit.to_frame(0.1)["interval"].array
    assert (ends.left == low).all()
    assert (ends.right == high).all()
    latex = fit.summary().as_latex()
    assert latex.count("tabular}") == 2
    for words in ("coef", "std err", "95\\% interval", "eps = 1", "n = 20,190"):
        assert words in latex
    assert "sampling" not in latex.partition("Note")[0]
    assert "sampling error" in fit.summary(full=True).as_latex()
    (row,) = [line for line in latex.splitlines() if line.startswith("slope\\_1")]
    assert row == r"slope\_1 & 5.0000 & 1.000 & {[}3.040, 6.960] \\"
    for seeded in (False, True):
        marked = eight(seeded=seeded)
        assert ("privacy" in marked.to_frame().attrs) == seeded
    with pytest.raises(dpreg.errors.NotReleased, match="to_frame"):
        make_selection().to_frame()


def test_a_paper_shows_no_interval_where_there_is_none(eight):
    fit = eight()
    covariance = fit.covariance.copy()
    covariance[1, :] = covariance[:, 1] = np.nan
    hidden = eight(covariance=covariance)
    assert r"slope\_0 & 5.0000 &  &  \\" in hidden.summary().as_latex()
    assert hidden.to_frame().isna().sum().tolist() == [0, 1, 1]
    none = eight(covariance=np.full((9, 9), np.nan))
    assert r"\begin{tabular}{lr}" in none.summary().as_latex()


# The whole page.


def test_a_whole_page_holds_facts_a_table_and_the_claim(make_selection):
    report = page(make_selection(fitted=True, seeded=True), 0.05, full=True)
    assert report.stamp == "NOT PRIVATE: seeded"
    assert sum(isinstance(block, Facts) for block in report.blocks) == 2
    assert len(grids(report)) == 3


@pytest.mark.parametrize("nobs", [20190, None])
def test_rows_are_shown_where_they_are_public(make_selection, nobs):
    facts = [b for b in page(make_selection(nobs=nobs), 0.05, full=True).blocks if
             isinstance(b, Facts)]  # fmt: skip
    told = dict(facts[0].right)
    assert told["n"] == ("private" if nobs is None else "20,190")
    assert told["eps"] == "1"


def test_remarks_are_numbered_and_told_once(make_regression, make_claim):
    fit = make_regression(notes=("a remark", "a remark"), claim=make_claim(split=True))
    told = [block for block in page(fit, 0.05, full=True).blocks if isinstance(block, Paragraph)]
    numbered = [block for block in told if block.label[:1] == "["]
    assert [block.label for block in numbered] == [f"[{j}]" for j in range(1, 6)]
    assert [block.text for block in numbered][2:4] == ["a remark", "radius: 17 blocks"]
    assert "in parallel" in numbered[-1].text
    assert of(fit, "Privacy", full=True) == make_claim(split=True).sentence


def test_after_looks_sampling_says_what_else_it_holds(make_regression):
    staged = make_regression(method="staged").summary(full=True)
    assert "sampling\nand cut" in grids(staged)[0].headers
    assert "cutting heavy-tailed residuals" in " ".join(str(staged).split())
    assert "heavy-tailed" not in str(make_regression().summary(full=True))


def test_a_whole_page_opens_with_what_was_found_what_is_unclear_and_the_cost(make_regression):
    fit = make_regression(
        ("Intercept", "lat", "age"),
        coefficients=[1.0, 5.0, 0.1],
        covariance=np.diag([1.0, 1.0, 1.0]),
    )
    found, unclear, cost = page(fit, 0.05, full=True).blocks[:3]
    assert found == Paragraph("Found", "1 of 2 coefficients differs from 0 at the 5% level: lat.")
    assert unclear.text.startswith("age. That does not show that it is useless: ")
    assert cost == Paragraph("Cost", "eps = 1 for each person (one row, replace-one).")
    lines = str(fit.summary(full=True)).splitlines()
    assert lines[2].startswith("Found:")


def test_a_selection_says_which_terms_the_fit_does_not_tell_from_zero(
    make_selection, make_regression
):
    """What a choice found may have an interval that holds 0."""
    names = ("Intercept", "bsqft", "lat", "county")

    def told(slopes, alpha=0.05, terms=("bsqft", "lat", "county"), **more):
        fit = make_regression(
            names, coefficients=[0.0, *slopes], fit="fresh", **({"covariance": np.eye(4)} | more)
        )
        chosen = ("Intercept", *terms)
        result = make_selection(models=[chosen], reported=chosen, regression=fit)
        return of(result, "Found", full=True, alpha=alpha)

    alone = "bsqft, lat and county."
    assert told([5, 5, 5]) == alone
    assert told([5, 1.9, 5]) == f"{alone} The fit alone does not tell lat from 0."
    assert told([5, 1.9, -1]) == f"{alone} The fit alone does not tell lat and county from 0."
    assert told([5, 1.9, 5], 0.1) == alone
    assert told([5, 5, 2.1], 0.01).endswith("does not tell county from 0.")
    assert told([5, 0, 0], terms=("bsqft",)) == "bsqft."
    assert told([0, 0, 0], covariance=np.full((4, 4), np.nan)) == alone


def test_a_factor_is_told_from_zero_by_any_of_its_levels(make_selection, make_regression):
    names = ("Intercept", "county[T.cc]", "county[T.sf]")
    for slopes, sure in (((0.1, 5), True), ((5, 0.1), True), ((0.1, 0.1), False)):
        fit = make_regression(names, coefficients=[1, *slopes], covariance=np.eye(3), fit="fresh")
        result = make_selection(
            models=[("Intercept", "county")], reported=("Intercept", "county"), regression=fit,
            columns={"Intercept": ("Intercept",), "county": names[1:]},
        )  # fmt: skip
        assert (of(result, "Found", full=True) == "county.") == sure


@pytest.mark.parametrize("full", [False, True])
def test_a_selection_opens_with_its_terms(make_selection, full):
    result = make_selection(models=[("Intercept", "lat")], reported=("Intercept", "lat"))
    assert of(result, "Found", full=full) == "lat."
    unclear = of(result, "Unclear", full=full)
    assert unclear.startswith("bsqft and county. That does not show that they are useless: ")
    either = make_selection(
        models=[("Intercept", "lat")], reported=("Intercept", "lat"),
        alternatives=(("bsqft", "county"),), method="staged",
    )  # fmt: skip
    found = of(either, "Found", full=full)
    assert "Also bsqft or county: the release cannot tell which." in found


@pytest.mark.parametrize("seeded", [False, True])
def test_a_seeded_cost_is_no_cost(make_regression, seeded):
    text = of(make_regression(seeded=seeded), "Cost")
    assert text.startswith("NOT PRIVATE: seeded. It would be") == seeded


def test_a_mean_opens_with_its_interval():
    rows = {"age": np.arange(4000) % 100, "price": np.arange(4000) % 90}
    found = dpreg.dp_mean("age", rows, bounds=(0, 120), eps=10)
    assert of(found, "Found").startswith("age: ")
    assert of(found, "Found").endswith("with its 95% interval.")
    assert of(found, "Cost").startswith("eps = 10")
    both = dpreg.dp_mean(["age", "price"], rows, bounds=(0, 120), eps=10)
    assert of(both, "Found", alpha=0.1).endswith("with 90% intervals.")


def test_a_long_formula_is_cut_on_a_screen_and_whole_where_there_is_room(eight, make_regression):
    formula = "price ~ " + " + ".join(f"a_rather_long_name_{j}" for j in range(12))
    fit = make_regression(formula=formula)
    assert of(fit, "Model").endswith(" + ... (whole in .formula)")
    assert of(fit, "Formula", full=True) == formula
    assert of(eight(), "Model") == eight().formula


def test_ratios_are_refused_of_a_linear_model(make_regression):
    with pytest.raises(dpreg.errors.ArgumentError, match="ratios belong to a family"):
        make_regression().summary(ratios=True)


def test_the_repr_is_one_line(make_regression):
    line = repr(make_regression(seeded=True, eps=Fraction(1, 3)))
    assert line == "<RegressionResults: price ~ bsqft + lat + county (eps=1) NOT PRIVATE: seeded>"
