import copy
import csv
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.iolib import table, tableformatting

from dpreg.results.claim import STAMP
from dpreg.results.summary import fold

VIEWS = [
    "as_text",
    "as_html",
    "as_latex",
    "as_csv",
    "__str__",
    "__repr__",
    "_repr_html_",
    "_repr_latex_",
]
HOSTILE = (
    "a%b_c", "<b>&amp;", "x{y}$z$", "back\\slash", "h#~^", "[opt]", 'quo"te\'s', "Größe €", "a|b",
    "line\nbreak", "\x1b[31mred", "colon:",
)  # fmt: skip


@pytest.fixture(params=["selection", "fitted", "regression", "bootstrap"])
def make(request, make_selection, make_regression):
    draws = {"interval_method": "bootstrap", "interval_draws": np.ones((3, 4)), "ridged": True}
    return {
        "selection": lambda **k: make_selection(**k),
        "fitted": lambda **k: make_selection(fitted=True, draws=5, **k),
        "regression": lambda **k: make_regression(**k),
        "bootstrap": lambda **k: make_regression(**draws, **k),
    }[request.param]


def _dicts(module):
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, dict) and not name.startswith("__")
    }


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_of_a_seeded_result_is_stamped_above_and_below(make, view):
    text = getattr(make(seeded=True).summary(), view)()
    lines = [
        line for line in text.splitlines() if line.strip() not in ("</div>", '<div class="dpreg">')
    ]
    assert STAMP in lines[0]
    assert STAMP in lines[-1]
    assert STAMP not in getattr(make().summary(), view)()


def test_views_of_the_result_itself_are_stamped(make):
    result = make(seeded=True)
    for view in ("__str__", "__repr__", "_repr_html_", "_repr_latex_", "to_json"):
        assert STAMP in getattr(result, view)(), view


def test_the_formats_of_statsmodels_are_left_alone(make):
    def formats():
        return copy.deepcopy([_dicts(module) for module in (table, tableformatting)])

    before = formats()
    for view in VIEWS:
        getattr(make(seeded=True).summary(), view)()
    assert formats() == before
    assert len(before[0]) > 3
    assert len(before[1]) > 3


@pytest.mark.parametrize("view", ["as_text", "as_html", "as_latex", "as_csv"])
def test_all_that_the_reader_must_know_is_there(make_selection, view):
    result = make_selection(draws=5, fitted=True, notes=["A public remark."], engine="tree")
    text = re.sub(r"\s+", " ", getattr(result.summary(full=True), view)())
    for word in (
        "PCLS", "permute-and-flip", "replace-one", "Contributions", "20,190", "1 (default)", "Clip",
        "auto", "0.333333", "28.3355", "schema", "tree", "county", "candidate", "kept", "half 1",
        "k-norm", "0.9", "R-squared", "0.613", "std err", "A public remark.", "17 blocks",
        "Differentially private with eps",
    ):  # fmt: skip
        assert word in text, word


def test_under_add_remove_no_number_of_rows_is_shown(make_selection, make_claim):
    result = make_selection(claim=make_claim(neighbors="add-remove"), nobs=None)
    assert "20,190" not in str(result)
    assert re.search(r"n: +private", str(result.summary(full=True)))
    assert re.search(r"Rows: +private", str(result))


def test_coefficients_are_printed_as_statsmodels_prints_them(make_regression):
    text = str(
        make_regression(
            ("Intercept", "tiny", "huge"),
            coefficients=[1.23456, 1.5e-7, 123456.789],
            covariance=np.diag([0.25, 1e-16, 1e6]),
        )
    )
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line}
    assert rows["Intercept"][:6] == ["1.2346", "0.500", "2.469", "0.014", "0.255", "2.215"]
    assert rows["tiny"][:4] == ["1.5e-07", "1e-08", "15.000", "0.000"]
    assert rows["huge"][:4] == ["1.235e+05", "1000.00", "123.457", "0.000"]


@pytest.mark.parametrize("draws", [1, 3])
def test_three_hundred_terms_stay_within_the_page(make_selection, draws):
    terms = tuple(f"np.log(a_rather_long_variable_name_{i}):county" for i in range(300))
    result = make_selection(terms, draws=draws, n_models=2**300)
    text = str(result.summary(full=True))
    for page in (str(result), text):
        assert max(map(len, page.splitlines())) <= 78
        assert re.search(r"Never selected \(\d+\): np.log", page)
        assert "(whole in .formula)" in " ".join(page.split())
    assert "2.037e+90" in text
    if draws == 1:
        found = "".join(text.split())
        assert all(term in found for term in result.selected)
    latex = result.summary().as_latex()
    assert "longtable" not in latex
    assert all(piece.count(r"\\") < 60 for piece in latex.split(r"\end{tabular}"))


def test_lines_of_a_common_summary_are_78_wide(make_selection, make_regression):
    for result in (make_selection(draws=10), make_regression()):
        assert max(map(len, str(result).splitlines())) == 78
        assert not any(line != line.rstrip() for line in str(result).splitlines())


def _shown(name):
    """Return a name as views show it: control characters as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


class Checker(HTMLParser):
    """Refuses tags that do not close in order, and collects the text of cells."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.cells, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def test_html_is_well_formed_and_shows_hostile_names_as_they_are(make_selection, make_regression):
    names = ("Intercept", *HOSTILE)
    for result in (make_selection(HOSTILE, draws=3), make_regression(names)):
        checker = Checker()
        checker.feed(result.summary().as_html())
        checker.close()
        assert checker.open == []
        assert checker.tags == {"div", "p", "strong", "table", "tr", "td", "th"}
        cells = [cell.strip() for cell in checker.cells]
        for name in HOSTILE:
            assert _shown(name) in cells


ESCAPED = re.compile(r"\\[{}$&%#_]|\\text(backslash|ascii\w+|less|greater|bar)\{\}")


def _is_sound_latex(text):
    bare = ESCAPED.sub("", text)
    depth = 0
    for character in bare:
        depth += (character == "{") - (character == "}")
        assert depth >= 0
    assert depth == 0
    assert not re.search(r"[$%#_^~<>|\"]", bare)
    begun, ended = (re.findall(rf"\\{word}\{{(\w+)\}}", bare) for word in ("begin", "end"))
    assert sorted(begun) == sorted(ended)
    widths = {}
    for block in re.findall(r"\\begin\{(?:tabular|longtable)\}(.*?)\\end", bare, re.DOTALL):
        aligns, _, body = block.lstrip("{").partition("}")
        widths[aligns] = [line.count("&") for line in body.splitlines() if line.endswith(r"\\")]
        assert set(widths[aligns]) == {len(aligns) - 1}
        assert not re.search(r"\\\\\s*\[", body)
    assert widths
    plain = r"begin|end|textbf|noindent|raggedright|par|parbox|linewidth|hline"
    known = rf"\\({plain}|footnotesize|setlength|tabcolsep|allowbreak|\\)"
    assert "\\" not in re.sub(known, "", bare)


def test_latex_escapes_hostile_names(make_selection, make_regression, make):
    names = ("Intercept", *HOSTILE)
    for result in (make_selection(HOSTILE, draws=3), make_regression(names), make(seeded=True)):
        _is_sound_latex(result.summary().as_latex())
    latex = make_regression(names).summary().as_latex()
    assert r"a\%b\_c" in latex
    assert r"\textbackslash{}slash" in latex


@given(names=st.lists(st.text(max_size=70), unique=True, max_size=4))
def test_any_name_gives_sound_views(make_selection, names):
    terms = tuple(name for name in names if name != "Intercept")
    page = make_selection(terms, draws=2).summary()
    checker = Checker()
    checker.feed(page.as_html())
    assert checker.open == []
    _is_sound_latex(page.as_latex())
    assert max(map(len, page.as_text().splitlines())) <= 100
    rows = list(csv.reader(io.StringIO(page.as_csv())))
    assert [row[0] for row in rows if len(row) > 1 and row[1] == "candidate"] == [
        _shown(term) for term in terms
    ]


def test_control_characters_reach_no_terminal(make_regression):
    text = str(make_regression(("Intercept", "\x1b[31mred")))
    assert "\x1b" not in text
    assert r"\x1b[31mred" in text


def test_csv_is_read_back(make_selection):
    rows = list(csv.reader(io.StringIO(make_selection(draws=4).summary(full=True).as_csv())))
    assert ["term", "role", "selected", "columns", "frequency (se)"] in rows
    assert ["Mechanism", "permute-and-flip"] in rows


def test_tables_are_statsmodels_tables(make_selection):
    result = make_selection(fitted=True)
    tables = result.summary(full=True).tables
    assert len(tables) == 5
    assert len(result.summary().tables) == 1
    assert all(isinstance(item, table.SimpleTable) for item in tables)


def test_sampling_and_privacy_have_columns_of_their_own(make_regression):
    result = make_regression()
    text = str(result.summary(full=True))
    row = next(line for line in text.splitlines() if line.startswith("lat"))
    assert row.split()[-2:] == [
        f"{result.bse_sampling['lat']:.3f}",
        f"{result.bse_privacy['lat']:.3f}",
    ]
    assert re.search(r"sampling +privacy", text)


@pytest.mark.parametrize(
    ("fit", "words"),
    [("split", "given the terms that the other rows"), ("share", "not account for")],
)
def test_a_note_says_what_intervals_hold_for(make_regression, fit, words):
    assert words in re.sub(r"\s+", " ", str(make_regression(fit=fit).summary(full=True)))


def test_a_ridged_fit_is_flagged(make_regression):
    assert "ridged by a public rule" in " ".join(str(make_regression(ridged=True)).split())
    text = str(make_regression(ridged=True).summary(full=True))
    assert "ridged by a public rule" in re.sub(r"\s+", " ", text)
    assert "noise-aware, ridged" in text


@pytest.mark.parametrize("limit", [12, 18, 20, 24])
@pytest.mark.parametrize(
    "label",
    [
        "ocean_proximity[T.ISLAND]", "np.log(a_rather_long_name + 1):county[T.c c]", "x" * 50,
        "a" * 19 + "]", "C(g, Treatment(reference='b'))[T.a]",
    ],
)  # fmt: skip
def test_labels_are_folded_without_loss_and_no_line_is_a_lone_bracket(label, limit):
    lines = fold(label, limit)
    assert max(map(len, lines)) <= limit
    assert "".join("".join(lines).split()) == "".join(label.split())
    assert not any(line.strip() in ("]", ")", ":", "") for line in lines)
