"""The LaTeX of every page compiles without a package, and nothing runs over the margin."""

import re
import shutil
import subprocess

import numpy as np
import pytest

import dpreg

pytestmark = pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="needs pdflatex (apt: texlive-latex-base)"
)

LONG = "np.log(a_rather_long_variable_name_{})"


@pytest.fixture
def pages(make_regression, make_selection):
    names = ("Intercept", *(LONG.format(i) for i in range(60)), "a%b_c{}", "county[T.c & c]:x^2")
    rows = {"age": np.random.default_rng(0).uniform(0, 99, 500)}
    return {
        "regression": make_regression(names, coefficients=np.full(len(names), -123456.789)),
        "selection": make_selection(tuple(LONG.format(i) for i in range(60)), fitted=True, draws=3),
        "seeded": make_selection(seeded=True),
        "mean": dpreg.dp_mean("age", rows, bounds=(0, 99), eps=1),
        "histogram": dpreg.dp_histogram("age", rows, bounds=(0, 99), bins=60, eps=1),
    }


@pytest.mark.parametrize("name", ["regression", "selection", "seeded", "mean", "histogram"])
def test_a_page_compiles_and_keeps_within_its_margins(pages, name, tmp_path):
    body = pages[name].summary().as_latex()
    text = "\\documentclass{article}\\begin{document}\n" + body + "\\end{document}\n"
    (tmp_path / "page.tex").write_text(text)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "page.pdf").stat().st_size > 1000
    wide = [float(pt) for pt in re.findall(r"Overfull \\hbox \(([\d.]+)pt", done.stdout)]
    assert not [pt for pt in wide if pt > 5], wide
