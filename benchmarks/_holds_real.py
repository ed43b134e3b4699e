"""The real cases of `benchmarks.holds`: tuning half. Bounds are literals from public knowledge.

They follow from what a column means: hours of a week, legal wages, scales of a survey, round limits
of prices. None is computed from rows. The tables of the two halves are different ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._holds_case import Case
from benchmarks._holds_tables import SOURCES

Column = Callable[[pd.DataFrame], Any]
YES = ["no", "yes"]


@lru_cache(8)
def _table(name: str) -> pd.DataFrame:
    return SOURCES[name].read()


def _frame(table: str, new: dict[str, Column], rng: np.random.Generator) -> pd.DataFrame:
    return _table(table).assign(**new)


def real(
    half: str,
    table: str,
    name: str,
    formula: str,
    schema: dict[str, Any],
    family: str = "linear",
    *,
    new: dict[str, Column] | None = None,
    person: str | None = None,
    call: dict[str, Any] | None = None,
) -> Case:
    """Make a case of a real table; `new` are columns that each row gives for itself."""
    return Case(
        name=name,
        half=half,
        table=table,
        formula=formula,
        schema=named_in(formula, schema),
        frame=partial(_frame, table, new or {}),
        family=family,
        mark=SOURCES[table].mark,
        person=person,
        call=call or {},
    )


def named_in(formula: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a schema declares of the columns of a formula."""
    used = set(re.findall(r"[A-Za-z_]\w*", formula))
    return {name: declared for name, declared in schema.items() if name in used}


def flag(column: str, value: Any = "yes") -> Column:
    """Return 1 where a column has a value, else 0."""
    return lambda rows: (rows[column] == value).astype(int)


tuning = partial(real, "tuning")


def kc_house() -> list[Case]:
    wide = {"price": (0, 2_000_000), "sqft_living": (0, 8_000), "bedrooms": (0, 10),
            "bathrooms": (0, 8), "floors": (1, 4), "waterfront": (0, 1), "view": (0, 4),
            "condition": (1, 5), "grade": (1, 13), "age": (0, 115),
            "lat": (47.1, 47.8)}  # fmt: skip
    logs = wide | {"price": (50_000, 10_000_000), "sqft_living": (200, 15_000)}
    thrice = wide | {"price": (0, 6_000_000), "sqft_living": (0, 24_000), "bedrooms": (0, 30),
                     "bathrooms": (0, 24), "age": (0, 345)}  # fmt: skip
    registry = wide | {"price": (0, 8_000_000), "sqft_living": (0, 15_000),
                       "sqft_lot": (0, 2_000_000), "dear": (0, 1)}  # fmt: skip
    new: dict[str, Column] = {
        "dear": lambda rows: (rows["price"] > 750_000).astype(int),
        "age": lambda rows: 2015 - rows["yr_built"],
        "cellar": lambda rows: (rows["sqft_basement"] > 0).astype(int),
    }
    made = partial(tuning, "kc_house", new=new)
    all_of_it = "bedrooms + bathrooms + floors + waterfront + view + condition + grade + age"
    return [
        made("kc_loglog", "np.log(price) ~ np.log(sqft_living)", logs),
        made("kc_log", f"np.log(price) ~ np.log(sqft_living) + {all_of_it} + lat", logs),
        made("kc_price", f"price ~ sqft_living + {all_of_it}", wide),
        made("kc_price_x3", f"price ~ sqft_living + {all_of_it}", thrice),
        made("kc_squares", "np.log(price) ~ grade + I(grade ** 2) + age + I(age ** 2)", logs),
        made("kc_dollars", "price ~ sqft_living", registry),
        made("kc_registry", "price ~ sqft_living + sqft_lot + bedrooms + bathrooms + age",
             registry),
        made("kc_lots", "np.log(price) ~ sqft_living + sqft_lot",
             registry | {"price": (50_000, 10_000_000)}),
        made("kc_size_square", "price ~ sqft_living + I(sqft_living ** 2)", registry),
        made("kc_dear", "dear ~ sqft_living + sqft_lot + bedrooms + bathrooms + age + lat + view",
             registry, "logit"),
        made("kc_cellar", "cellar ~ np.log(sqft_living) + floors + age + condition + lat",
             logs | {"cellar": (0, 1)}, "logit"),
    ]  # fmt: skip


def randhie() -> list[Case]:
    schema = {"mdvis": (0, 20), "lncoins": (0, 5), "idp": (0, 1), "lpi": (0, 8), "fmde": (0, 8.3),
              "physlm": (0, 1), "disea": (0, 60), "hlthg": (0, 1), "hlthf": (0, 1),
              "hlthp": (0, 1)}  # fmt: skip
    right = " + ".join(list(schema)[1:])
    seen: dict[str, Column] = {"seen": lambda rows: (rows["mdvis"] > 0).astype(int)}
    return [
        tuning("randhie", "rand_visits", f"mdvis ~ {right}", schema, "poisson"),
        tuning("randhie", "rand_ols", f"mdvis ~ {right}", schema),
        tuning("randhie", "rand_any", f"seen ~ {right}", schema | {"seen": (0, 1)}, "logit",
               new=seen),
    ]  # fmt: skip


def earnings() -> list[Case]:
    cps: dict[str, Any] = {
        "wage": (20, 20_000), "experience": (-5, 65), "education": (0, 18),
        "ethnicity": ["cauc", "afam"], "smsa": YES, "parttime": YES,
        "region": ["northeast", "midwest", "south", "west"],
    }  # fmt: skip
    cps8: dict[str, Any] = {
        "earnings": (1, 100), "gender": ["male", "female"], "age": (16, 70), "education": (0, 20),
        "region": ["Northeast", "Midwest", "South", "West"],
    }  # fmt: skip
    slid: dict[str, Any] = {
        "wages": (1, 100), "education": (0, 20), "age": (16, 95), "sex": ["Female", "Male"],
        "language": ["English", "French", "Other"],
    }  # fmt: skip
    young: dict[str, Any] = {
        "earnings": (1, 100), "degree": ["highschool", "bachelor"], "gender": ["male", "female"],
        "age": (25, 34), "year": {"levels": [1992, 2004]},
    }  # fmt: skip
    years = {"levels": list(range(1992, 2005, 2))}
    curve = "np.log(wage) ~ experience + I(experience ** 2) + education + ethnicity"
    return [
        tuning("CPS1988", "cps88_curve", curve, cps),
        tuning("CPS1988", "cps88_all", f"{curve} + smsa + region + parttime", cps),
        tuning("CPS1988", "cps88_line", "np.log(wage) ~ experience + education", cps),
        tuning("CPS1988", "cps88_dollars", "wage ~ experience + education + ethnicity + smsa",
               cps | {"wage": (0, 3_000)}),
        tuning("CPS1988", "cps88_x3", "wage ~ experience + education + ethnicity + smsa",
               cps | {"wage": (0, 60_000), "experience": (-15, 195), "education": (0, 54)}),
        tuning("CPSSW8", "cps04_curve", "np.log(earnings) ~ gender * education + age + I(age ** 2)"
               " + region", cps8),
        tuning("CPSSW8", "cps04_one", "earnings ~ education", cps8),
        tuning("CPSSW8", "cps04_pairs", "earnings ~ education * age + gender", cps8),
        tuning("CPSSW9204", "young_log", "np.log(earnings) ~ degree + gender + age + year", young),
        tuning("CPSSW9204", "young_dollars", "earnings ~ degree * gender + age + year", young),
        tuning("CPSSW3", "gap", "earnings ~ gender * year", young | {"year": years}),
        tuning("SLID", "slid_curve", "np.log(wages) ~ education + age + I(age ** 2) + sex"
               " + language", slid),
    ]  # fmt: skip


def diamonds() -> list[Case]:
    clear = ["SI2", "SI1", "VS2", "VVS2", "VVS1", "IF"]
    schema: dict[str, Any] = {
        "price": (0, 20_000), "carat": (0.1, 5), "cut": ["Fair", "Good", "Very Good", "Premium",
        "Ideal"], "color": ["G", "D", "E", "F", "H", "I", "J"], "clarity": ["I1", *clear, "VS1"],
        "depth": (40, 80), "table": (40, 100),
    }  # fmt: skip
    sizes = schema | {"x": (0, 15), "dear": (0, 1)}
    dear: dict[str, Column] = {"dear": lambda rows: (rows["price"] > 5_000).astype(int)}
    common = schema | {"clarity": ["VS1", *clear, "I1"]}
    made = partial(tuning, "diamonds")
    return [
        made("diamonds_I1", "price ~ carat + clarity", schema),
        made("diamonds_VS1", "price ~ carat + clarity", common),
        made("diamonds_line", "price ~ carat", schema),
        made("diamonds_square", "price ~ carat + I(carat ** 2)", schema),
        made("diamonds_log", "np.log(price) ~ np.log(carat) + cut + color",
             schema | {"price": (100, 20_000)}),
        made("diamonds_half_log", "np.log(price) ~ carat", schema | {"price": (100, 20_000)}),
        made("diamonds_loglog", "np.log(price) ~ np.log(carat)", schema | {"price": (100, 20_000)}),
        made("diamonds_pairs", "price ~ carat * clarity", common),
        made("diamonds_width", "price ~ x + I(x ** 2)", sizes),
        made("diamonds_dear", "dear ~ x + depth + table", sizes, "logit", new=dear),
        made("diamonds_x3", "price ~ carat + depth",
             schema | {"price": (0, 60_000), "carat": (0, 15), "depth": (0, 150)}),
        made("diamonds_shape", "price ~ carat + depth + table", schema),
    ]  # fmt: skip


def surveys() -> list[Case]:
    vocab = {"vocabulary": (0, 10), "year": (1970, 2020), "sex": ["Female", "Male"],
             "education": (0, 20)}  # fmt: skip
    gss: dict[str, Any] = {
        "kids": (0, 8), "age": (18, 89), "education": (0, 20), "year": (1970, 2005),
        "siblings": (0, 20), "ethnicity": ["cauc", "other"], "city16": YES, "lowincome16": YES,
        "immigrant": YES,
    }  # fmt: skip
    lines = "age + education + siblings + ethnicity + city16 + lowincome16 + immigrant"
    levels = ["highschool", "none", "ged", "bachelor", "master", "other"]
    insured: dict[str, Any] = {
        "insured": (0, 1), "healthy": (0, 1), "age": (18, 65), "limit": YES,
        "gender": ["female", "male"], "married": YES, "selfemp": YES, "family": (1, 14),
        "region": ["northeast", "midwest", "south", "west"], "ethnicity": ["cauc", "afam", "other"],
        "education": [*levels, "phd"],
    }  # fmt: skip
    new = {"insured": flag("insurance"), "healthy": flag("health")}
    who = "healthy + age + limit + gender + married + selfemp + family + region + ethnicity"
    policy = partial(tuning, "HealthInsurance", family="logit", new=new)
    births: dict[str, Any] = {
        "more": (0, 1), "morekids": YES, "age": (15, 35), "afam": YES, "hispanic": YES,
        "other": YES, "work": (0, 52), "gender1": ["male", "female"],
        "gender2": ["male", "female"], "alike": (0, 1),
    }  # fmt: skip
    two: dict[str, Column] = {
        "more": flag("morekids"),
        "alike": lambda rows: (rows["gender1"] == rows["gender2"]).astype(int),
    }
    mother = "age + afam + hispanic + other"
    return [
        tuning("Vocab", "vocab", "vocabulary ~ education + year + sex", vocab),
        tuning("Vocab", "vocab_square", "vocabulary ~ education + I(education ** 2) + year", vocab),
        tuning("Vocab", "vocab_pairs", "vocabulary ~ education * year + sex", vocab),
        tuning("GSS7402", "kids_line", f"kids ~ {lines}", gss, "poisson"),
        tuning("GSS7402", "kids_square", f"kids ~ {lines} + I(age ** 2)", gss, "poisson"),
        tuning("GSS7402", "kids_ols", "kids ~ age + education + ethnicity", gss),
        policy("insured", f"insured ~ {who} + education", insured),
        policy("insured_phd", f"insured ~ {who} + education",
               insured | {"education": ["phd", *levels]}),
        tuning("Fertility2", "births_more", f"more ~ {mother} + gender1 * gender2", births, "logit",
               new={"more": flag("morekids")}),
        tuning("Fertility2", "births_work", f"work ~ morekids + {mother}", births),
        tuning("Fertility", "mothers_more", f"more ~ alike + {mother}", births, "logit", new=two),
        tuning("Fertility", "mothers_work", f"work ~ morekids + {mother}", births),
    ]  # fmt: skip


def other_tables() -> list[Case]:
    storms: dict[str, Any] = {
        "wind": (0, 170), "pressure": (870, 1030), "lat": (0, 70), "long": (-110, 0),
        "month": (1, 12), "year": (1970, 2020), "strong": (0, 1),
    }  # fmt: skip
    strong: dict[str, Column] = {"strong": lambda rows: (rows["wind"] >= 64).astype(int)}
    chemistry = {"score": (0, 10), "gcsescore": (0, 8), "gender": ["F", "M"], "age": (-6, 6)}
    football = {"HomeGoals": (0, 12), "Year": (1960, 2010), "Round": (1, 38), "bayern": (0, 1),
                "against": (0, 1)}  # fmt: skip
    bayern = {"bayern": flag("HomeTeam", "Bayern Muenchen"),
              "against": flag("AwayTeam", "Bayern Muenchen")}  # fmt: skip
    pupils: dict[str, Any] = {
        "math": (-6, 6), "year": (-2.5, 2.5), "female": ["Male", "Female"], "black": (0, 1),
        "lowinc": (0, 100), "mobility": (0, 100),
    }  # fmt: skip
    airfoil = {"x1": (-3_000, 18_000), "x2": (-7, 16), "x3": (-0.15, 0.2), "x4": (-20, 21),
               "x5": (-0.02, 0.06), "y": (-25, 20)}  # fmt: skip
    prostate = {"lpsa": (-1, 6), "lcavol": (-1.5, 4), "lweight": (2, 5), "age": (40, 80),
                "svi": (0, 1)}  # fmt: skip
    return [
        tuning("storms", "storms_line", "wind ~ pressure", storms),
        tuning("storms", "storms_square", "wind ~ pressure + I(pressure ** 2)", storms),
        tuning("storms", "storms_all", "wind ~ pressure + lat + long + month + year", storms),
        tuning("storms", "storms_strong", "strong ~ lat + long + month + year", storms, "logit",
               new=strong),
        tuning("Chem97", "chem_line", "score ~ gcsescore + gender + age", chemistry),
        tuning("Chem97", "chem_square", "score ~ gcsescore + I(gcsescore ** 2) + gender",
               chemistry),
        tuning("Bundesliga", "goals", "HomeGoals ~ Year + Round + bayern + against", football,
               "poisson", new=bayern),
        tuning("egsingle", "pupils", "math ~ year + I(year ** 2) + female + black + lowinc"
               " + mobility", pupils, person="childid",
               call={"contributions": 6}),
        tuning("airfoil", "airfoil", "y ~ x1 + x2 + x3 + x4 + x5", airfoil),
        tuning("prostate", "prostate", "lpsa ~ lcavol + lweight + age + svi", prostate),
    ]  # fmt: skip


def cases() -> list[Case]:
    """Return the real cases of the tuning half."""
    return [*kc_house(), *randhie(), *earnings(), *diamonds(), *surveys(), *other_tables()]
