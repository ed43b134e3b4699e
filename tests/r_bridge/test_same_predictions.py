"""R computes predictions by itself: the same as Python's, to the last digit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.results.base import from_json
from dpreg.results.glm import GLMResults

ROWS = 1_000
FORMULAS = [
    "y ~ x * g + factor(k) + flag",
    "y ~ g:h + z - 1",
    "y ~ h + g:flag",
    "y ~ (x + z + g)^2 + I(x^2) + I(x > 2) + I(z / 3 - x)",
    "y ~ x:flag:h + factor(k, levels = c(2, 1, 3)) * z",
    "y ~ poly(x, 2, raw = TRUE) * h + abs(z)",
    "y ~ .",
]
# Functions whose last digit is the library's own.
ROUGH = [
    "y ~ log(x + 1) + sqrt(x) * g",
    "y ~ splines::bs(x, knots = c(2, 5)) + I(x^3) + log10(x + 1)",
]
# Of models of families: the formula, and what else the call is given.
FAMILIES = [
    ("flag ~ x * g + factor(k)", "family = binomial()"),
    ("I(y > 0) ~ h + I(x^2) + I(z / 3 - x) + g:flag", "family = binomial()"),
    ("count ~ z + g", "family = poisson(), offset = I(x / 9)"),
    ("count ~ z:h + flag + offset(x / 20)", "family = quasipoisson()"),
    ("count ~ z * h", 'family = poisson(), exposure = "years"'),
]
SCHEMA = """list(y = c(-10, 10), x = c(0, 9), z = c(-3, 3), g = c("a", "b", "c d"), h = c("u", "v"),
  k = list(levels = 1:3), flag = logical(), count = c(0, 12), years = c(1, 3))"""


NUMBERS = ["y", "x", "z", "k", "flag", "count", "years"]


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(20261122)
    frame = pd.DataFrame(
        {
            "y": rng.normal(size=ROWS),
            "x": rng.uniform(0, 9, ROWS),
            "z": rng.normal(size=ROWS),
            "g": rng.choice(["a", "b", "c d"], ROWS),
            "h": rng.choice(["u", "v"], ROWS),
            "k": rng.choice([1.0, 2.0, 3.0], ROWS),
            "flag": rng.choice([0.0, 1.0], ROWS),
        }
    )
    frame["count"] = np.rint(np.exp(frame["z"] / 2 + 1))
    frame["years"] = rng.uniform(1, 3, ROWS)
    for place, name in enumerate(frame.columns):
        frame.loc[rng.random(ROWS) < 0.013 * place, name] = None
    return frame


def handed_over(table: pd.DataFrame, folder: Path) -> str:
    """Write a table bit for bit, and return the R code that reads it."""
    table[NUMBERS].to_numpy(dtype=np.float64).T.tofile(folder / "numbers.bin")
    table[["g", "h"]].to_csv(folder / "texts.csv", index=False)
    return f"""
        library(dpreg)
        schema <- {SCHEMA}
        numbers <- matrix(readBin("numbers.bin", "double", {ROWS * len(NUMBERS)}), {ROWS})
        table <- cbind(setNames(as.data.frame(numbers), c({json.dumps(NUMBERS)[1:-1]})),
                       read.csv("texts.csv", na.strings = ""))
        table$g <- factor(table$g)
        """


@pytest.mark.parametrize("method", ["gram", "adaptive"])
def test_predictions_of_r_and_python_are_the_same_numbers(
    rscript, table: pd.DataFrame, tmp_path: Path, method: str
) -> None:
    head = handed_over(table, tmp_path)
    fits = "\n".join(f"one({formula}, {i})" for i, formula in enumerate(FORMULAS + ROUGH))
    told = rscript(
        f"""
        {head}
        one <- function(formula, i) {{
          fit <- suppressWarnings(dp_ols(formula, table, eps = 2000, schema = schema,
                                         method = "{method}"))
          told <- predict(fit, table, se.fit = TRUE, interval = "prediction", level = 0.9)
          writeBin(c(predict(fit, table), told$fit, told$se.fit), paste0(i, ".bin"))
          cat(fit$python$json, "\\n")
        }}
        {fits}
        """
    )
    results = [from_json(line) for line in told.splitlines()]
    assert len(results) == len(FORMULAS) + len(ROUGH)
    assert {result.method for result in results} == {method}
    for place, result in enumerate(results):
        alone, mean, low, high, error = np.fromfile(tmp_path / f"{place}.bin").reshape(5, ROWS)
        prediction = result.get_prediction(table)
        expected = prediction.predicted_mean
        assert 0 < np.isnan(expected).sum() < ROWS / 2
        np.testing.assert_array_equal(alone, mean)
        if place < len(FORMULAS):
            np.testing.assert_array_equal(alone, expected, err_msg=result.formula)
            np.testing.assert_array_equal(result.predict(table).to_numpy(), expected)
        else:
            np.testing.assert_allclose(
                alone, expected, rtol=1e-12, atol=1e-12, err_msg=result.formula
            )
        limits = prediction.conf_int(obs=True, alpha=0.1)
        # Variances are sums of terms that cancel, the more the smaller the result.
        near = {"rtol": 1e-6, "atol": 1e-5 * float(np.nanmax(prediction.se_mean, initial=0.0))}
        np.testing.assert_allclose(error, prediction.se_mean, **near)
        np.testing.assert_allclose(np.column_stack([low, high]), limits, **near)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_means_and_chances_are_the_same_numbers(
    rscript, table: pd.DataFrame, tmp_path: Path, delta: float
) -> None:
    fits = "\n".join(f"one({formula}, {i}, {more})" for i, (formula, more) in enumerate(FAMILIES))
    told = rscript(
        f"""
        {handed_over(table, tmp_path)}
        one <- function(formula, i, ...) {{
          fit <- suppressWarnings(dp_glm(formula, table, eps = 2000, delta = {delta},
                                         schema = schema, ...))
          told <- lapply(c("link", "response"), function(type) {{
            told <- predict(fit, table, type = type, se.fit = TRUE, interval = "confidence",
                            level = 0.9)
            c(told$fit, told$se.fit)
          }})
          writeBin(c(predict(fit, table), unlist(told)), paste0(i, ".bin"))
          cat(fit$python$json, "\n")
        }}
        {fits}
        """
    )
    results = [from_json(line) for line in told.splitlines()]
    assert len(results) == len(FAMILIES)
    for place, result in enumerate(results):
        assert isinstance(result, GLMResults)
        assert not result.bse.isna().any()
        alone, *columns = np.fromfile(tmp_path / f"{place}.bin").reshape(9, ROWS)
        np.testing.assert_array_equal(alone, columns[0])
        assert 0 < np.isnan(alone).sum() < ROWS / 2
        for which, (value, low, high, error) in zip(
            ("linear", "mean"), (columns[:4], columns[4:]), strict=True
        ):
            prediction = result.get_prediction(table, which=which)
            expected = prediction.predicted
            np.testing.assert_array_equal(result.predict(table, which=which).to_numpy(), expected)
            if "log" in str(result.offset):
                np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
            else:
                np.testing.assert_array_equal(value, expected, err_msg=result.formula)
            near = {"rtol": 1e-6, "atol": 1e-6 * float(np.nanmax(prediction.se))}
            np.testing.assert_allclose(error, prediction.se, **near)
            np.testing.assert_allclose(
                np.column_stack([low, high]), prediction.conf_int(0.1), **near
            )


@pytest.mark.parametrize("method", ["pcls", "adaptive"])
def test_a_selection_predicts_what_python_predicts(rscript, tmp_path: Path, method: str) -> None:
    data = dpreg.datasets.load_randhie()
    (tmp_path / "schema.json").write_text(data.schema.to_json())
    data.data.to_csv(tmp_path / "data.csv", index=False)
    told = rscript(
        f"""
        library(dpreg)
        data <- read.csv("data.csv")
        fit <- dp_select(mdvis ~ lncoins + idp + lpi + fmde + physlm + disea, data, eps = 50,
                         schema = "schema.json", units = "column", method = "{method}")
        stopifnot(fit$settings$method == "{method}")
        cat(fit$python$json, "\\n")
        cat(sprintf("%.17g", predict(fit, data[1:{ROWS}, ])), sep = "\\n")
        """
    )
    line, *numbers = told.splitlines()
    table = pd.read_csv(tmp_path / "data.csv")[:ROWS]
    assert [*map(float, numbers)] == from_json(line).predict(table).tolist()
