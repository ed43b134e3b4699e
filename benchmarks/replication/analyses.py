"""The analyses: tables that ship with a package or lie in DPREG_DATA, and simulated wages.

Bounds come from what a column means, as they would in a schema: hours in a week, a legal minimum,
the range that a survey records. None was taken from the rows.

The tables of Debian's r-cran-aer are written out by R, once for each run of the benchmark. They are
those of Kleiber and Zeileis (2008), Applied Econometrics with R: CPS1988 is that of Bierens and
Ginther (2001), CPSSW* and Fertility belong to Stock and Watson's textbook, DoctorVisits to Cameron
and Trivedi (1986).
"""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._uci import load_uci
from dpreg import datasets

REGIONS = ["Northeast", "Midwest", "South", "West"]
AER = ("CPS1988", "CPSSW8", "CPSSW3", "CPSSW9204", "CPSSW04", "Fertility", "DoctorVisits")


@dataclass(frozen=True)
class Analysis:
    """One regression: a formula, a schema, and what gives the rows."""

    name: str
    formula: str
    schema: dict[str, Any]
    rows: Callable[[], pd.DataFrame]
    source: str

    def read(self) -> pd.DataFrame:
        """The rows, with factors in the schema's order: both fits have the same reference."""
        data = self.rows()
        for name, declared in self.schema.items():
            levels = declared["levels"] if isinstance(declared, dict) else declared
            if isinstance(declared, dict) or isinstance(levels[0], str):
                data = data.assign(**{name: pd.Categorical(data[name], levels)})
        return data[list(self.schema)]


def has_aer() -> bool:
    """Whether R and the package AER are here."""
    if shutil.which("Rscript") is None:
        return False
    asked = ["Rscript", "-e", "quit(status = !requireNamespace('AER', quietly = TRUE))"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


@lru_cache(None)
def _aer() -> dict[str, pd.DataFrame]:
    """Every table of AER that is used here, by way of CSV files in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = ", ".join(f"'{name}'" for name in AER)
        program = (
            f"for (name in c({wanted})) {{ data(list = name, package = 'AER'); "
            f"write.csv(get(name), file.path('{folder}', name), row.names = FALSE) }}"
        )
        subprocess.run(["Rscript", "-e", program], check=True, capture_output=True)
        return {name: pd.read_csv(Path(folder) / name) for name in AER}


def aer(name: str, **logs: str) -> Callable[[], pd.DataFrame]:
    """Rows of a table of AER; `lwage="wage"` adds the logarithm of a column, cell by cell."""

    def rows() -> pd.DataFrame:
        data = _aer()[name]
        return data.assign(**{new: np.log(data[old]) for new, old in logs.items()})

    return rows


def flags(name: str, columns: tuple[str, ...], **logs: str) -> Callable[[], pd.DataFrame]:
    """The same, with columns of "yes" and "no" as 1 and 0."""

    def rows() -> pd.DataFrame:
        data = aer(name, **logs)()
        return data.assign(**{column: (data[column] == "yes").astype(int) for column in columns})

    return rows


def wages(n: int) -> Callable[[], pd.DataFrame]:
    """Simulated wages as in the CPS: factors, an interaction, a square, heavier tails."""

    def rows() -> pd.DataFrame:
        rng = np.random.default_rng([2021, n])
        female = rng.integers(0, 2, n)
        region = rng.choice(4, n, p=[0.18, 0.22, 0.37, 0.23])
        sector = rng.choice(3, n, p=[0.72, 0.18, 0.10])
        education = np.clip(np.round(rng.normal(13.5, 2.7, n)), 0, 20)
        experience = np.clip(np.round(rng.gamma(2.2, 9, n)), 0, 60)
        union = rng.random(n) < 0.13
        married = rng.random(n) < 0.35 + 0.3 * (experience > 10)
        log_wage = (
            0.9 + 0.095 * education + 0.032 * experience - 0.0005 * experience**2
            - 0.22 * female + 0.07 * married - 0.05 * female * married + 0.13 * union
            + np.array([0.05, 0.0, -0.06, 0.04])[region] + np.array([0.0, 0.03, -0.04])[sector]
            + 0.46 * rng.standard_t(8, n) * math.sqrt(6 / 8)
        )  # fmt: skip
        return pd.DataFrame({
            "lwage": log_wage, "education": education, "experience": experience,
            "female": female, "married": married.astype(int), "union": union.astype(int),
            "region": np.array(REGIONS)[region],
            "sector": np.array(["private", "public", "self"])[sector],
        })  # fmt: skip

    return rows


_WAGES = {
    "lwage": (-1, 6),
    "education": (0, 20),
    "experience": (0, 60),
    "female": (0, 1),
    "married": (0, 1),
    "union": (0, 1),
    "region": REGIONS,
    "sector": ["private", "public", "self"],
}
_WAGE_FORMULA = (
    "lwage ~ education + experience + I(experience ** 2) + female * married + union "
    "+ region + sector"
)


def _kc_house() -> pd.DataFrame:
    data = datasets.load_kc_house().data
    return data.assign(lprice=np.log(data["price"]), age=2015 - data["yr_built"])


_UCI = {"bike": ("x5", "x6")}
"""Tables, with the columns that are left out: x5 and x6 of bike are x1 and x2 once more. Elevators
is left out whole: its columns are collinear, and least squares is not unique."""


def analyses(*, real_data: bool = True, with_r: bool = True) -> list[Analysis]:
    """All analyses that can be run here, smallest promise of survival last."""
    found = [
        Analysis(f"wages, {n:,}", _WAGE_FORMULA, _WAGES, wages(n), "simulated")
        for n in (1_000_000, 100_000, 10_000)
    ]
    if with_r:
        found += _textbook()
    randhie = datasets.load_randhie()
    fair = {
        "affairs": (0, 60), "rate_marriage": (1, 5), "age": (17, 45), "yrs_married": (0, 25),
        "children": (0, 6), "religious": (1, 4), "educ": (9, 20),
    }  # fmt: skip
    found += [
        Analysis("randhie", randhie.formula, randhie.schema.to_dict(),
                 lambda: randhie.data, "statsmodels"),
        Analysis("fair", "affairs ~ " + " + ".join(list(fair)[1:]), fair, _fair, "statsmodels"),
    ]  # fmt: skip
    if real_data:
        found += _folder()
    return found


def _fair() -> pd.DataFrame:
    import statsmodels.api as sm

    frame: pd.DataFrame = sm.datasets.fair.load_pandas().data
    return frame


def _folder() -> list[Analysis]:
    house = {
        "lprice": (10, 16.5), "sqft_living": (0, 10_000), "bedrooms": (0, 12),
        "bathrooms": (0, 8), "grade": (1, 13), "condition": (1, 5), "view": (0, 4),
        "waterfront": (0, 1), "age": (0, 120),
    }  # fmt: skip
    formula = "lprice ~ " + " + ".join(list(house)[1:])
    found = [Analysis("King County", formula, house, _kc_house, "King County")]
    for name, twice in _UCI.items():
        table = load_uci(name)
        response, columns = table.formula.split(" ~ ")
        once = " + ".join(c for c in columns.split(" + ") if c not in twice)
        declared = {c: b for c, b in table.schema.to_dict().items() if c not in twice}

        def rows(table: Any = table) -> pd.DataFrame:
            frame: pd.DataFrame = table.data
            return frame

        found.append(Analysis(name, f"{response} ~ {once}", declared, rows, "UCI"))
    return found


def _textbook() -> list[Analysis]:
    sex, degrees = ["male", "female"], ["highschool", "bachelor"]
    cps1988 = {
        "lwage": (3, 10), "experience": (-5, 65), "education": (0, 18),
        "ethnicity": ["cauc", "afam"],
    }  # fmt: skip
    cps1988_all = {
        **cps1988, "smsa": (0, 1), "parttime": (0, 1),
        "region": ["northeast", "midwest", "south", "west"],
    }  # fmt: skip
    cpssw8 = {
        "learnings": (0, 5), "gender": sex, "age": (15, 90), "education": (0, 20),
        "region": REGIONS,
    }  # fmt: skip
    yes_no = ("morekids", "afam", "hispanic", "other")
    fertility = {"work": (0, 52), "morekids": (0, 1), "age": (15, 45),
                 **dict.fromkeys(yes_no[1:], (0, 1))}  # fmt: skip
    visits = {
        "visits": (0, 14), "gender": sex, "age": (0.15, 0.8), "income": (0, 2),
        "illness": (0, 5), "reduced": (0, 14), "health": (0, 12), "private": (0, 1),
        "nchronic": (0, 1), "lchronic": (0, 1),
    }  # fmt: skip
    square = "I(experience ** 2)"
    return [
        Analysis("CPS1988", f"lwage ~ experience + {square} + education + ethnicity", cps1988,
                 aer("CPS1988", lwage="wage"), "AER"),
        Analysis("CPS1988, all", f"lwage ~ experience + {square} + education + ethnicity + smsa "
                 "+ region + parttime", cps1988_all,
                 flags("CPS1988", ("smsa", "parttime"), lwage="wage"), "AER"),
        Analysis("CPSSW8", "learnings ~ gender * education + age + I(age ** 2) + region", cpssw8,
                 aer("CPSSW8", learnings="earnings"), "AER"),
        Analysis("CPSSW3", "learnings ~ gender * year",
                 {"learnings": (0, 5), "gender": sex,
                  "year": {"levels": list(range(1992, 2006, 2))}},
                 aer("CPSSW3", learnings="earnings"), "AER"),
        Analysis("CPSSW9204", "learnings ~ year + age + gender + degree",
                 {"learnings": (0, 5), "year": {"levels": [1992, 2004]}, "age": (25, 34),
                  "gender": sex, "degree": degrees},
                 aer("CPSSW9204", learnings="earnings"), "AER"),
        Analysis("CPSSW04", "learnings ~ age + gender * degree",
                 {"learnings": (0, 5), "age": (25, 34), "gender": sex, "degree": degrees},
                 aer("CPSSW04", learnings="earnings"), "AER"),
        Analysis("Fertility", "work ~ " + " + ".join(list(fertility)[1:]), fertility,
                 flags("Fertility", yes_no), "AER"),
        Analysis("DoctorVisits", "visits ~ " + " + ".join(list(visits)[1:]), visits,
                 flags("DoctorVisits", ("private", "nchronic", "lchronic")), "AER"),
    ]  # fmt: skip
