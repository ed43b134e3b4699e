import sys

import numpy as np
import pandas as pd
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

from dpreg.errors import ArgumentError  # noqa: E402
from dpreg.options import PCLS  # noqa: E402
from dpreg.study import plots  # noqa: E402
from dpreg.study.results import CURATOR_ONLY, SIMULATED  # noqa: E402
from dpreg.study.selection import selection_study  # noqa: E402
from dpreg.study.simulation import simulation_study  # noqa: E402

KINDS = ("agreement", "relative_rsquared", "frequencies", "probabilities")


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (200, 3)), columns=["a", "b", "y"])
    frame["y"] = 0.5 * frame["a"]
    return selection_study(
        "y ~ a + b",
        frame,
        schema=dict.fromkeys(frame, (-1, 1)),
        eps=(1, 5),
        method=PCLS(
            radius=(0.5, 1), penalty=(1, 2, 4, 16, "auto"), mechanism=("laplace", "exponential")
        ),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_says_curator_only(study, kind):
    figure = study.plot(kind)
    assert CURATOR_ONLY in figure.get_suptitle()
    figure.canvas.draw()


def _panels(figure):
    return [axes for axes in figure.axes if axes.lines]


def test_agreement_is_drawn_over_the_penalty(study):
    figure = study.plot("agreement")
    panels = _panels(figure)
    assert len(panels) == 4  # two mechanisms, two radii
    line = panels[0].lines[0]
    expected = study.agreement["same score"].xs((1.0, 0.5, "laplace"), level=[0, 1, 3])
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 4, 16])
    np.testing.assert_array_equal(line.get_ydata(), expected.drop("auto"))
    assert panels[0].get_xscale() == "log"
    assert panels[0].get_ylim()[1] > 1


def test_agreement_with_bic_has_a_line_without_noise(study):
    labels = [line.get_label() for line in _panels(study.plot(reference="bic"))[0].lines]
    assert labels == ["no noise", "eps 1", "eps 5"]
    with pytest.raises(ArgumentError, match="reference"):
        study.plot(reference="aic")


def test_without_two_penalties_eps_goes_across():
    frame = pd.DataFrame({"a": [0.0, 1.0], "y": [0.0, 1.0]})
    schema = dict.fromkeys(frame, (0, 1))
    one = selection_study("y ~ a", frame, schema=schema, eps=(1, 2, 9))
    panel = _panels(one.plot())[0]
    assert panel.get_xlabel() == "eps"
    np.testing.assert_array_equal(panel.lines[0].get_xdata(), [1, 2, 9])


def test_frequencies_show_every_number_in_ink_that_contrasts(study):
    panel = study.plot("frequencies").axes[0]
    texts = [text.get_text() for text in panel.texts]
    shown = study.frequencies.iloc[:, :16].to_numpy()
    assert texts == [f"{value:.2f}" for value in shown.ravel()]
    assert "24 settings" in panel.get_xlabel()
    dark = [t.get_color() == "white" for t in panel.texts]
    np.testing.assert_array_equal(dark, shown.ravel() > 0.75)


def test_probabilities_name_the_choice_without_noise(study):
    panel = study.plot("probabilities", models=3, setting=4).axes[0]
    assert len(panel.patches) == 3
    with pytest.raises(ArgumentError, match="setting"):
        study.plot("probabilities", setting=40)
    with pytest.raises(ArgumentError, match="kind"):
        study.plot("pie")


@pytest.mark.parametrize("options", [{"models": 0}, {"models": "x"}, {"setting": "x"}])
def test_what_is_shown_of_probabilities_is_checked(study, options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        study.plot("probabilities", **options)


def test_without_free_terms_there_are_no_frequencies_to_draw():
    frame = pd.DataFrame({"a": [0.0, 1.0], "y": [0.0, 1.0]})
    bare = selection_study(
        "y ~ a", frame, schema={"a": (0, 1), "y": (0, 1)}, keep=("Intercept", "a")
    )
    with pytest.raises(ArgumentError, match="keep"):
        bare.plot("frequencies")


def test_lines_differ_in_more_than_colour():
    styles = [(s["linestyle"], s["marker"]) for s in plots.STYLES]
    assert len(set(styles)) == len(styles)
    assert all(0 <= float(s["color"]) <= 0.5 for s in plots.STYLES)


def test_simulations_have_a_panel_for_n_and_radius():
    study = simulation_study(
        (1, 0),
        (50, 100),
        radius=(1, 2),
        eps=(1, 5),
        datasets=3,
        penalty=(0, 0.1, 0.2),
        bound=(3, 4),
    )
    figure = study.plot()
    assert SIMULATED in figure.get_suptitle()
    assert "r 3" in figure.get_suptitle()
    panels = _panels(figure)
    assert len(panels) == 4
    assert [line.get_label() for line in panels[0].lines] == ["no noise", "eps 1", "eps 5"]
    np.testing.assert_allclose(panels[2].lines[0].get_xdata(), [0, 10, 20])
    assert len(_panels(study.plot(50, bound=4, reference=False))) == 2
    for wrong in ({"n": 7}, {"bound": 9}, {"colour": "red"}):
        with pytest.raises(ArgumentError):
            study.plot(**wrong)
    figure.canvas.draw()


def test_without_matplotlib_the_error_names_the_extra(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ArgumentError, match=r"dpreg\[plot\]"):
        study.plot()
