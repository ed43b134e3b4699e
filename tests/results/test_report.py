import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import ArgumentError, DataError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.results.report import report_html, write_report

SCHEMA = {"y": (-1, 1), "a<b>": (-1, 1), "c": (-1, 1)}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, 3000)
    y = a / 2 + rng.normal(0, 0.1, 3000)
    return pd.DataFrame({"y": y, "a<b>": a, "c": rng.uniform(-1, 1, 3000)})


@pytest.fixture(scope="module")
def results(frame):
    ledger = Ledger(Budget(40, "1e-5"))
    shared = {"schema": SCHEMA, "budget": ledger}
    return {
        "select": dpreg.dp_select("y ~ Q('a<b>') + c", frame, 4, draws=5, **shared),
        "ols": dpreg.dp_ols("y ~ Q('a<b>') + c", frame, 4, **shared),
        "looks": dpreg.dp_select(
            "y ~ Q('a<b>') + c", frame, 4, method="adaptive", fit="same", **shared
        ),
        "family": dpreg.dp_glm(
            "I(1 * (y > 0)) ~ Q('a<b>') + c", frame, eps=4, delta="1e-6", **shared
        ),
        "mean": dpreg.dp_mean(["y", "c"], frame, eps=4, **shared),
        "quantile": dpreg.dp_quantile("y", 0.5, frame, eps=4, **shared),
        "histogram": dpreg.dp_histogram("y", frame, eps=4, bins=5, **shared),
        "seeded": dpreg.dp_mean("y", frame, eps=4, unsafe_seed=1, schema=SCHEMA),
    }


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.links += [v for k, v in attrs if k in ("src", "href", "xlink:href", "data", "action")]
        assert not any(name.startswith("on") for name, _ in attrs)
        assert tag not in ("script", "link", "iframe", "object", "embed")


KINDS = ["select", "looks", "ols", "family", "mean", "quantile", "histogram", "seeded"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_says_all_and_fetches_nothing(results, kind):
    result = results[kind]
    text = report_html(result)
    page = Page(text)
    assert all(link.startswith("#") for link in page.links)
    assert not re.search(r"url\((?!#)", text)
    plain = re.sub(r"\s+", " ", text)
    for section in ("What was asked", "The privacy statement", "What was found", "How to verify"):
        assert f"<h2>{section}</h2>" in text
    assert result.claim.sentence[:60] in plain.replace("&#x27;", "'")
    assert ("NOT PRIVATE" in text) == (kind == "seeded")
    if kind == "seeded":
        assert "No ledger was charged" in text
    else:
        assert result.record.ledger.head in text
    assert ("<svg" in text) == (kind in ("select", "looks", "ols", "family", "histogram"))
    assert "<b>&#x27;" not in text
    assert "a<b>" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_notes_are_numbered_without_gaps_and_none_stands_twice(results, kind):
    text = report_html(results[kind])
    numbers = [int(n) for n in re.findall(r"<strong>\[(\d+)\]</strong>", text)]
    assert numbers == list(range(1, len(numbers) + 1))
    for spend in results[kind].claim.spends:
        assert not spend.note or text.count(spend.note) == 1


def test_kinds_of_columns_are_not_called_public(results):
    assert "column names are public" in report_html(results["mean"])
    assert "kinds" not in report_html(results["mean"])


def test_a_family_is_not_called_linear(results):
    text = report_html(results["family"])
    assert "<h1>Private binomial regression: " in text
    assert "errors of one variance" not in text


def test_arguments_that_are_code_stay_text(frame):
    name = '"><script>alert(1)</script>'
    result = dpreg.dp_mean(name, frame.rename(columns={"c": name}), bounds=(-1, 1), eps=1)
    Page(report_html(result))


def test_a_report_is_written_whole_or_not_at_all(results, tmp_path):
    write_report(results["mean"], tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == report_html(results["mean"])
    with pytest.raises(DataError):
        write_report(results["mean"], tmp_path)
    with pytest.raises(ArgumentError, match="made from a result"):
        write_report("r.json", tmp_path / "x.html")


def test_without_matplotlib_the_page_says_so(results, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert "they need matplotlib" in report_html(results["ols"])


def test_a_result_of_0_1_has_a_report(results):
    text = report_html(replace(results["ols"], record=None))
    assert "The call was not recorded" in text


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium to print with")
def test_it_prints_to_a4_pages(results, tmp_path):
    write_report(results["select"], tmp_path / "r.html")
    subprocess.run(
        [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={tmp_path / 'user'}", "--no-pdf-header-footer",
            f"--print-to-pdf={tmp_path / 'r.pdf'}", (tmp_path / "r.html").as_uri(),
        ],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    assert (tmp_path / "r.pdf").read_bytes()[:5] == b"%PDF-"


@pytest.mark.parametrize(
    ("neighbors", "word"), [("add-remove", "left out"), ("replace-one", "different")]
)
def test_the_factor_is_said_of_what_the_relation_covers(neighbors, word):
    """Under add-remove, data that differ are one row less and one more: a factor of exp(2 eps)."""
    x = [1.0, 2.0, 3.0] * 100
    result = dpreg.dp_mean(x, bounds=(0, 4), eps=1, neighbors=neighbors)
    assert f"a factor of 2.72 if that person's data were {word}." in report_html(result)
