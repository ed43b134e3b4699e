import sys
from itertools import pairwise

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

import dpreg  # noqa: E402
from dpreg.errors import ArgumentError, NotReleased  # noqa: E402
from dpreg.results import plots  # noqa: E402
from dpreg.results.claim import STAMP  # noqa: E402


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


def _labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_frequencies_are_drawn_by_their_size(make_selection):
    result = make_selection(draws=20)
    axes = result.plot()
    ordered = result.selection_frequencies.sort_values(ascending=False)
    assert sorted(_labels(axes)) == sorted(ordered.index)
    drawn = np.sort(
        np.concatenate(
            [
                line.get_xdata()
                for line in axes.lines
                if line.get_label() in ("selected", "not selected")
            ]
        )
    )
    np.testing.assert_allclose(drawn, np.sort(ordered))
    assert "20 released draws" in axes.get_xlabel()
    axes.figure.canvas.draw()


def test_one_draw_is_drawn_too(make_selection):
    axes = make_selection().plot()
    assert "one released draw" in axes.get_xlabel()
    axes.figure.canvas.draw()


def test_many_terms_are_cut_and_said_to_be(make_selection):
    axes = make_selection(tuple(f"x{i}" for i in range(300)), draws=5).plot()
    assert len(_labels(axes)) == 40
    assert "260 terms" in axes.get_ylabel()


def test_no_candidates_make_an_empty_picture(make_selection, make_regression):
    make_selection(()).plot().figure.canvas.draw()
    make_regression(("Intercept",)).plot().figure.canvas.draw()


def test_coefficients_are_drawn_with_their_intervals(make_regression):
    result = make_regression()
    axes = result.plot()
    assert _labels(axes) == list(result.exog_names[1:])
    (segments,) = [item.get_segments() for item in axes.collections]
    ends = np.array(segments)[:, :, 0]
    np.testing.assert_allclose(ends, result.conf_int().to_numpy()[1:])
    assert "95% interval" in axes.get_xlabel()


def test_widths_bring_coefficients_into_units_of_the_response(make_regression):
    widths = np.array([1.0, 10.0, 100.0, 1000.0])
    result = make_regression(column_widths=widths)
    axes = result.plot(alpha=0.1)
    (segments,) = [item.get_segments() for item in axes.collections]
    expected = result.conf_int(0.1).to_numpy()[1:] * widths[1:, None]
    np.testing.assert_allclose(np.array(segments)[:, :, 0], expected)
    assert "half the declared range, in units of price (90% interval)" in axes.get_xlabel()


def test_kinds(make_selection):
    fitted = make_selection(fitted=True, draws=2)
    assert "coefficient" in fitted.plot().get_xlabel()
    assert "draws" in fitted.plot("frequencies").get_xlabel()
    with pytest.raises(NotReleased, match="plot"):
        make_selection().plot("coefficients")
    with pytest.raises(ArgumentError, match="kind"):
        fitted.plot("pie")


def test_a_given_axes_is_used(make_selection):
    _, axes = pyplot.subplots()
    assert make_selection().plot(ax=axes) is axes


@pytest.mark.parametrize("kind", ["frequencies", "coefficients"])
def test_pictures_of_seeded_results_are_stamped(make_selection, kind):
    assert STAMP in make_selection(fitted=True, seeded=True).plot(kind).get_title()
    assert STAMP not in make_selection(fitted=True).plot(kind).get_title()


def test_a_dollar_in_a_name_is_no_formula(make_selection):
    axes = make_selection(("$x^$", "y_$\\frac$"), draws=2, response="$").plot()
    axes.figure.canvas.draw()


def test_without_matplotlib_the_error_names_the_extra(make_selection, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ArgumentError, match=r"dpreg\[plot\]"):
        make_selection().plot()


def test_results_do_not_import_matplotlib():
    assert not any(name.startswith(("matplotlib", "pyplot")) for name in vars(plots))


def overlapping(axes):
    """Pairs of neighbouring tick labels whose boxes meet."""
    axes.figure.canvas.draw()
    pairs = []
    for axis in (axes.xaxis, axes.yaxis):
        boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
        inside = axes.get_window_extent().padded(1)
        seen = [b for b in boxes if inside.x0 - b.width <= b.x0 and b.x1 <= inside.x1 + b.width]
        pairs += [(a, b) for a, b in pairwise(seen) if a.overlaps(b)]
    return pairs


@pytest.mark.parametrize("scale", [1e-7, 1.0, 98765.4321, 1e9])
def test_ticks_of_coefficients_never_overlap(make_regression, scale):
    names = ("Intercept", *(f"np.log(a_rather_long_variable_name_{i})" for i in range(40)))
    size = len(names)
    fit = make_regression(
        names,
        coefficients=np.linspace(-1, 1, size) * scale,
        covariance=np.eye(size) * scale**2,
        column_widths=np.ones(size),
    )
    assert overlapping(fit.plot()) == []


@pytest.mark.parametrize("levels", [2, 5, 14, 60])
@pytest.mark.parametrize("name", ["{}", "a rather long name of level {}"])
def test_ticks_of_levels_never_overlap(levels, name):
    known = [name.format(i) for i in range(levels)]
    rows = {"g": np.random.default_rng(0).choice(known, 500)}
    drawn = dpreg.dp_histogram("g", rows, eps=1, schema={"g": {"levels": known}}, unsafe_seed=1)
    assert overlapping(drawn.plot()) == []


@pytest.mark.parametrize("top", [1e-7, 1.0, 40_000, 1e12])
@pytest.mark.parametrize("bins", [5, 60])
def test_ticks_of_numbers_never_overlap(top, bins):
    rows = {"x": np.random.default_rng(0).uniform(0, top, 500)}
    drawn = dpreg.dp_histogram("x", rows, eps=1, bounds=(0, top), bins=bins, unsafe_seed=1)
    assert overlapping(drawn.plot()) == []
