"""The same table, formula and seed give R and Python the same result, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.results.base import from_json
from dpreg.results.selection import SelectionResults

CALLS = {
    "selection": (
        "dp_select",
        "mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp",
        {"eps": 1, "unsafe_seed": 7},
    ),
    "several draws": (
        "dp_select",
        "mdvis ~ disea + lpi + idp",
        {"eps": 0.7, "delta": 1e-6, "draws": 5, "keep": ["disea"], "unsafe_seed": 11},
    ),
    "transformed": (
        "dp_select",
        "mdvis ~ np.log1p(disea) + I(lpi ** 2) + idp:disea",
        {"eps": "2.5", "unsafe_seed": 3, "fit": "share"},
    ),
    "selection alone": (
        "dp_select",
        "mdvis ~ disea + lpi",
        {"eps": 0.5, "fit": None, "max_terms": 1, "unsafe_seed": 3},
    ),
    "regression": (
        "dp_ols",
        "mdvis ~ disea + lpi",
        {"eps": 1, "delta": 1e-6, "neighbors": "add-remove", "unsafe_seed": 5},
    ),
    "bounds bought": ("dp_ols", "mdvis ~ disea + fmde", {"eps": 3, "unsafe_seed": 5}),
    "looks": (
        "dp_ols",
        "mdvis ~ lncoins + idp + disea",
        {"eps": 2, "method": "adaptive", "unsafe_seed": 5},
    ),
    "looks, Gaussian": (
        "dp_ols",
        "mdvis ~ lncoins + idp:disea",
        {"eps": 1, "delta": 1e-6, "neighbors": "add-remove"} | {"unsafe_seed": 5},
    ),
    "staged selection": (
        "dp_select",
        "mdvis ~ lncoins + idp + lpi + physlm + disea + hlthg + hlthf + hlthp",
        {"eps": 2, "method": "adaptive", "unsafe_seed": 9},
    ),
    "yes or no": (
        "dp_glm",
        "any ~ lncoins + idp + disea",
        {"eps": 1, "delta": 1e-6, "unsafe_seed": 5},
    ),
    "yes or no, pure": (
        "dp_glm",
        "any ~ disea",
        {"eps": 8, "neighbors": "add-remove", "unsafe_seed": 5},
    ),
    "counts": (
        "dp_glm",
        "mdvis ~ lncoins + physlm",
        {"eps": 1, "delta": 1e-6, "family": "poisson", "offset": "np.log(disea + 1)"}
        | {"unsafe_seed": 5},
    ),
    "rates of persons": (
        "dp_glm",
        "mdvis ~ idp + physlm",
        {"eps": 2, "delta": 1e-6, "family": "quasipoisson", "exposure": "years"}
        | {"person": "family", "contributions": 2, "unsafe_seed": 5},
    ),
    "terms of counts": (
        "dp_select",
        "mdvis ~ lncoins + idp + physlm",
        {"eps": 2, "delta": 1e-6, "family": "poisson", "exposure": "years", "unsafe_seed": 9},
    ),
    "successes": (
        "dp_glm",
        "any ~ disea + physlm",
        {"eps": 2, "delta": 1e-6, "trials": "years", "unsafe_seed": 9},
    ),
    "of persons": (
        "dp_select",
        "mdvis ~ lncoins + idp + disea",
        {"eps": 3, "person": "family", "contributions": 2, "unsafe_seed": 9},
    ),
    "regression of persons": (
        "dp_ols",
        "mdvis ~ lncoins + idp + disea",
        {"eps": 3, "person": "family", "contributions": 2, "unsafe_seed": 9},
    ),
}
UNDECLARED = "fmde"


def released(text: str) -> object:
    """Read a result, but for the records of the calls, and for columns that no call used.

    A record says when a call was, in its words; R sends the columns of a call alone.
    """

    def bare(value: object) -> object:
        if isinstance(value, dict):
            return {
                key: bare(item) for key, item in value.items() if key not in ("record", "schema")
            }
        return [bare(item) for item in value] if isinstance(value, list) else value

    return bare(json.loads(text))


def in_r(function: str, formula: str, arguments: dict[str, object]) -> str:
    """Write a call as an R user would."""

    def value(item: object) -> str:
        if isinstance(item, list):
            return f"c({', '.join(map(value, item))})"
        return "NULL" if item is None else json.dumps(item)

    def words(text: str) -> str:
        return text.replace("np.", "").replace("**", "^")

    given = words(", ".join(f"{name} = {value(item)}" for name, item in arguments.items()))
    written = words(formula)
    return f'{function}({written}, data, {given}, schema = "schema.json")'


@pytest.fixture
def answers(rscript, tmp_path: Path) -> tuple[dict[str, object], pd.DataFrame, dpreg.Schema]:
    """Return R's results by name, the table bit for bit as R saw it, and the schema."""
    data = dpreg.datasets.load_randhie()
    declared = {**data.schema, "any": (0, 1), "years": (1, 3)}
    schema = dpreg.Schema({name: spec for name, spec in declared.items() if name != UNDECLARED})
    (tmp_path / "schema.json").write_text(schema.to_json())
    place = np.arange(len(data.data))
    frame = data.data.assign(
        any=1 * (data.data["mdvis"] > 0), years=1 + place % 3, family=place // 3
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    fits = "\n".join(f"cat({in_r(*call)}$python$json, '\\n')" for call in CALLS.values())
    told = rscript(
        f"""
        library(dpreg)
        data <- read.csv("data.csv")
        {fits}
        connection <- file("data.bin", "wb")
        for (name in names(data)) writeBin(as.double(data[[name]]), connection)
        close(connection)
        """
    )
    columns = np.fromfile(tmp_path / "data.bin").reshape(frame.shape[1], -1)
    table = pd.DataFrame(dict(zip(frame.columns, columns, strict=True)))
    lines = told.splitlines()
    return dict(zip(CALLS, map(released, lines), strict=True)), table, schema


@pytest.mark.filterwarnings("ignore:the schema leaves out")
def test_r_and_python_agree(answers) -> None:
    told, table, schema = answers
    for name, (function, formula, arguments) in CALLS.items():
        options = {key: tuple(v) if isinstance(v, list) else v for key, v in arguments.items()}
        result = getattr(dpreg, function)(formula, table, schema=schema, **options)
        assert told[name] == released(result.to_json()), name
    assert told["selection"]["stamp"] == "NOT PRIVATE: seeded"


def test_coefficients_given_the_choice_are_the_same(rscript, tmp_path: Path) -> None:
    """R works out their limits and p-values by itself; no Python is needed for them."""
    data = dpreg.datasets.load_randhie()
    (tmp_path / "schema.json").write_text(data.schema.to_json())
    data.data.to_csv(tmp_path / "data.csv", index=False)
    told = rscript(
        """
        library(dpreg)
        fit <- dp_select(mdvis ~ lncoins + idp + lpi + physlm + disea + hlthg, read.csv("data.csv"),
                         eps = 0.7, schema = "schema.json", method = "adaptive", fit = "same")
        cat(fit$python$json, "\n")
        table <- tidy(fit, conf.int = TRUE, conf.level = 0.9)
        cat(table$term, "\n")
        numbers <- as.matrix(table[c("estimate", "conf.low", "conf.high", "p.value")])
        cat(sprintf("%.17g", t(numbers)), sep = "\n")
        """
    )
    line, names, *numbers = told.splitlines()
    result = from_json(line)
    assert isinstance(result, SelectionResults)
    assert result.regression is not None
    assert result.regression.among == 6
    limits, pvalues = result.conf_int(0.1), result.pvalues
    table = np.array([float(number) for number in numbers]).reshape(-1, 4)
    for name, (estimate, low, high, p) in zip(names.split(), table, strict=True):
        python = "Intercept" if name == "(Intercept)" else name
        assert estimate == result.params[python]
        size = result.bse[python]
        np.testing.assert_allclose([low, high], limits.loc[python], rtol=1e-7, atol=1e-7 * size)
        np.testing.assert_allclose(p, pvalues[python], rtol=1e-7, atol=1e-12)


AGGREGATES = {
    "plain": {"eps": 1, "bounds": [0, 10], "unsafe_seed": 2},
    "uncorrected": {"eps": 1, "bounds": [0, 10], "correct_bias": False, "unsafe_seed": 3},
    "private n": {"eps": 0.5, "bounds": [0, 10], "neighbors": "add-remove", "unsafe_seed": 4},
    "gaussian": {"eps": 2, "delta": 1e-6, "bounds": [0, 10], "noise": "gaussian", "unsafe_seed": 5},
    "several rows": {
        "eps": 3,
        "bounds": [0, 10],
        "contributions": 2,
        "blocks": 90,
        "unsafe_seed": 6,
    },
    "the mean": {"eps": 3, "bounds": [0, 10], "aggregation": "mean", "unsafe_seed": 7},
    "failing": {"eps": 3, "bounds": [0, 10], "unsafe_seed": 8, "timeout": 60},
}


def test_r_and_python_agree_on_any_estimator(rscript, tmp_path: Path) -> None:
    """The median of each block, and nothing at all where the block's first number is large."""
    values = np.random.default_rng(0).exponential(size=5_003).round(3)
    levels = np.random.default_rng(1).choice(["u", "v", "w"], values.size)
    np.savetxt(tmp_path / "values.csv", values, header="x", comments="")
    pd.DataFrame({"x": values, "g": levels}).to_csv(tmp_path / "table.csv", index=False)

    def middle(block):
        return np.median(block)

    def sometimes(block):
        if block[0] > 1:
            raise ValueError
        return np.median(block)

    def grouped(block):
        return [block["x"].median(), len(block)]

    def written(name: str, arguments: dict[str, object]) -> str:
        given = dict(arguments)
        low, high = given.pop("bounds")
        texts = ", ".join(f"{key} = {in_words(value)}" for key, value in given.items())
        estimator = "sometimes" if name == "failing" else "median"
        return f"sample_aggregate({estimator}, x, bounds = c({low}, {high}), {texts})"

    def in_words(item: object) -> str:
        return str(item).upper() if isinstance(item, bool) else json.dumps(item)

    calls = [written(*item) for item in AGGREGATES.items()]
    calls += [
        f"""sample_aggregate(function(block) c(median(block$x), nrow(block)), table, eps = 4,
            by = "g", bounds = list(middle = c(0, 10), rows = c(0, 500)),
            schema = list(g = c("u", "v"), x = c(0, 10)), neighbors = "{neighbors}",
            unsafe_seed = 9)"""
        for neighbors in ("replace-one", "add-remove")
    ]
    told = rscript(
        """
        library(dpreg)
        x <- read.csv("values.csv")$x
        table <- read.csv("table.csv")
        sometimes <- function(block) if (block[1] > 1) stop(block[1]) else median(block)
        """
        + "\n".join(f"cat({call}$python$json, '\\n')" for call in calls)
    )
    answers = [released(line) for line in told.splitlines()]
    for (name, arguments), answer in zip(AGGREGATES.items(), answers, strict=False):
        estimator = sometimes if name == "failing" else middle
        options = {key: value for key, value in arguments.items() if key != "timeout"}
        result = dpreg.sample_aggregate(estimator, values, **options)
        assert answer == released(result.to_json()), name
    table = pd.DataFrame({"x": values, "g": levels})
    bounds = {"middle": (0, 10), "rows": (0, 500)}
    for neighbors, answer in zip(("replace-one", "add-remove"), answers[-2:], strict=True):
        result = dpreg.sample_aggregate(
            grouped, table, eps=4, by="g", bounds=bounds, schema={"g": ["u", "v"], "x": (0, 10)},
            neighbors=neighbors, unsafe_seed=9,
        )  # fmt: skip
        assert answer == released(result.to_json()), neighbors


def test_r_and_python_agree_on_files(rscript, tmp_path: Path) -> None:
    data = dpreg.datasets.load_randhie()
    (tmp_path / "schema.json").write_text(data.schema.to_json())
    half = len(data.data) // 2
    data.data[:half].to_parquet(tmp_path / "a.parquet")
    data.data[half:].to_parquet(tmp_path / "b.parquet")
    told = rscript(
        """
        library(dpreg)
        call <- function(data) {
          dp_select(mdvis ~ disea + lpi + idp, data, eps = 2, schema = "schema.json",
                    unsafe_seed = 1)
        }
        tables <- list("*.parquet", c("a.parquet", "b.parquet"))
        for (data in tables) cat(call(data)$python$json, "\n")
        """
    )
    result = dpreg.dp_select(
        "mdvis ~ disea + lpi + idp", data.data, eps=2, schema=data.schema, unsafe_seed=1
    )
    for line in told.splitlines():
        assert released(line) == released(result.to_json())


def test_r_and_python_agree_on_simulations(rscript) -> None:
    told = rscript(
        """
        library(dpreg)
        study <- simulation_study(c(1, 0.5, 0), c(100, 400), radius = c(1, 2), eps = 3,
                                  datasets = 5, penalty = c(0.05, 0.2), bound = 5)
        cat(sprintf("%.17g", study$proportions$right), sep = "\n")
        """
    )
    study = dpreg.simulation_study(
        (1, 0.5, 0), (100, 400), radius=(1, 2), eps=3, datasets=5, penalty=(0.05, 0.2), bound=5
    )
    assert [*map(float, told.split())] == study.proportions["right"].tolist()


def test_a_choice_of_dpreg_0_2_has_its_truncated_laws(rscript) -> None:
    saved = Path(__file__).parents[1] / "results" / "saved-0.2" / "select-same.json"
    numbers = "c(confint(fit, level = 0.9), dpreg::tidy(fit)$p.value)"
    told = rscript(f'fit <- dpreg::dp_load("{saved}")\ncat(format({numbers}, digits = 15))')
    fit = from_json(saved.read_text(encoding="utf-8")).regression
    expected = np.concatenate([fit.conf_int(0.1).to_numpy().ravel(), fit.pvalues.to_numpy()])
    found = np.array(told.split(), dtype=np.float64)
    np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=1e-12)
