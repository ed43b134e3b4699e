"""The real cases of `benchmarks.holds`: held-out half. No constant may be chosen on them.

Bounds are literals from public knowledge, as in `benchmarks._holds_real`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from benchmarks._holds_case import Case
from benchmarks._holds_real import YES, Column, flag, real

held_out = partial(real, "held-out")


def centred() -> list[Case]:
    bike = {"x1": (-1, 1), "x2": (-6, 6), "x7": (-12, 12), "x8": (-1, 1), "x10": (-1, 1),
            "x11": (-1, 3), "x12": (-1, 1), "x14": (-1, 1), "x15": (-1, 1),
            "y": (-5, 3)}  # fmt: skip
    planes = {"x1": (-1_000, 1_000), "x2": (-200, 200), "x3": (-2, 2), "x4": (-1, 1), "x5": (-5, 5),
              "x7": (-100, 100), "x8": (-0.1, 0.1), "x9": (-10, 10), "y": (-2, 2)}  # fmt: skip
    concrete = {f"x{j + 1}": bounds for j, bounds in enumerate((
        (-200, 300), (-100, 300), (-60, 150), (-60, 70), (-10, 30), (-200, 200), (-200, 250),
        (-50, 320)))} | {"y": (-40, 50)}  # fmt: skip

    def on_all(schema: dict[str, Any]) -> str:
        return "y ~ " + " + ".join(name for name in schema if name != "y")

    return [
        held_out("bike", "bike_all", on_all(bike), bike),
        held_out("bike", "bike_hours", "y ~ x7 + I(x7 ** 2) + x12", bike),
        held_out("elevators", "elevators", on_all(planes), planes),
        held_out("concrete", "concrete", on_all(concrete), concrete),
    ]


def marriages_and_wages() -> list[Case]:
    fair = {"rate_marriage": (1, 5), "age": (17, 45), "yrs_married": (0, 25), "children": (0, 6),
            "religious": (1, 4), "educ": (9, 20)}  # fmt: skip
    why = " + ".join(fair)
    any_of: dict[str, Column] = {"any": lambda rows: (rows["affairs"] > 0).astype(int)}
    smokers: dict[str, Any] = {
        "smokes": (0, 1), "ban": YES, "age": (18, 90), "afam": YES, "hispanic": YES,
        "gender": ["male", "female"],
        "education": ["master", "hs drop out", "hs", "some college", "college"],
    }  # fmt: skip
    men = {"lnhr": (2, 9), "lnwg": (-1, 5), "kids": (0, 6), "age": (22, 60), "disab": (0, 1)}
    smokes = "smokes ~ ban + age + I(age ** 2) + education + afam + hispanic + gender"
    return [
        held_out("fair", "affair", f"any ~ {why}", fair | {"any": (0, 1)}, "logit", new=any_of),
        held_out("fair", "affairs", f"affairs ~ {why}", fair | {"affairs": (0, 20)}),
        held_out("SmokeBan", "smokers", smokes, smokers, "logit", new={"smokes": flag("smoker")}),
        held_out("LaborSupply", "hours", "lnhr ~ lnwg + kids + age + disab", men, person="id",
                 call={"contributions": 10}),
    ]  # fmt: skip


def schools() -> list[Case]:
    rated: dict[str, Any] = {
        "y": (1, 5), "service": {"levels": [0, 1]}, "studage": {"levels": [2, 4, 6, 8]},
        "lectage": {"levels": [1, 2, 3, 4, 5, 6]}, "high": (0, 1),
    }  # fmt: skip
    high: dict[str, Column] = {"high": lambda rows: (rows["y"] >= 4).astype(int)}
    star: dict[str, Any] = {
        "math": (250, 800), "cltype": ["reg", "small", "reg+A"], "gr": ["K", "1", "2", "3"],
        "ses": ["N", "F"], "sx": ["F", "M"], "eth": ["W", "B", "A", "H", "I", "O"],
        "exp": (0, 45), "schtype": ["rural", "inner", "suburb", "urban"],
    }  # fmt: skip
    class_of = "math ~ cltype + gr + ses + sx + eth + exp + schtype"
    schools = {"mAch": (-3, 25), "ses": (-4, 3), "minrty": ["No", "Yes"], "sx": ["Female", "Male"],
               "sector": ["Public", "Catholic"]}  # fmt: skip
    marks = "studage + lectage"
    return [
        held_out("InstEval", "ratings", f"y ~ service + {marks}", rated),
        held_out("InstEval", "ratings_who", f"y ~ service + {marks}", rated, person="s",
                 call={"contributions": 40}),
        held_out("InstEval", "ratings_high", f"high ~ service + {marks}", rated, "logit", new=high),
        held_out("star", "star", class_of, star),
        held_out("star", "star_who", class_of, star, person="id",
                 call={"contributions": 4}),
        held_out("Hsb82", "schools", "mAch ~ ses * sector + minrty + sx", schools),
    ]  # fmt: skip


def counts_and_shares() -> list[Case]:
    races = ["White", "Black", "East African", "Latino", "Native American", "Other", "Unknown"]
    stops: dict[str, Any] = {
        "person": (0, 1), "vehicle": (0, 1), "race": ["Asian", *races],
        "gender": ["Female", "Male", "Unknown"], "problem": ["suspicious", "traffic"],
        "lat": (44.88, 45.06), "long": (-93.34, -93.19),
    }  # fmt: skip
    searched: dict[str, Column] = {
        "person": lambda rows: (rows["personSearch"] == "YES").where(rows["personSearch"].notna()),
        "vehicle": lambda rows: (rows["vehicleSearch"] == "YES").where(
            rows["vehicleSearch"].notna()
        ),
    }
    searched = {name: _as_number(made) for name, made in searched.items()}
    police = partial(held_out, "MplsStops", family="logit", new=searched)
    chains = {"death": (0, 1), "age": (50, 105), "sex": ["F", "M"], "kappa": (0.01, 30),
              "creatinine": (0, 20), "lambda_": (0.01, 30), "mgus": (0, 1)}  # fmt: skip
    light: dict[str, Column] = {"lambda_": lambda rows: rows["lambda"]}
    tv: dict[str, Any] = {
        "tvhours": (0, 24), "age": (18, 89), "year": (2000, 2014),
        "race": ["Other", "Black", "White"],
        "marital": ["Married", "Never married", "Separated", "Divorced", "Widowed"],
    }  # fmt: skip
    visits: dict[str, Any] = {
        "visits": (0, 14), "gender": ["male", "female"], "age": (0.15, 0.8), "income": (0, 2),
        "illness": (0, 5), "reduced": (0, 14), "health": (0, 12), "private": YES,
    }  # fmt: skip
    ill = "visits ~ gender + age + income + illness + reduced + health + private"
    made = held_out
    return [
        police("searched", "person ~ race + gender + problem", stops),
        police("searched_white", "person ~ race + gender + problem",
               stops | {"race": [*races, "Asian"]}),
        police("searched_cars", "vehicle ~ problem + gender + lat + long", stops),
        made("flchain", "deaths", "death ~ age + sex + np.log(kappa) + np.log(lambda_)", chains,
             "logit", new=light),
        made("flchain", "chains", "np.log(lambda_) ~ np.log(kappa) + age + sex + mgus", chains,
             new=light),
        made("flchain", "chains_line", "lambda_ ~ kappa + age", chains, new=light),
        made("flchain", "kidneys", "creatinine ~ age + I(age ** 2) + sex", chains),
        made("gss_cat", "tv", "tvhours ~ age + race + marital", tv, "poisson"),
        made("gss_cat", "tv_ols", "tvhours ~ age + I(age ** 2) + race + marital + year", tv),
        made("DoctorVisits", "doctor", ill, visits, "poisson"),
    ]  # fmt: skip


def other_tables() -> list[Case]:
    players: dict[str, Any] = {
        "hr": (0, 80), "ab": (0, 750), "r": (0, 200), "h": (0, 300), "bb": (0, 240),
        "sb": (0, 140), "so": (0, 250),
        "year": (1870, 2010), "any": (0, 1),
    }  # fmt: skip
    home: dict[str, Column] = {"any": lambda rows: (rows["hr"] > 0).astype(int)}
    played = partial(held_out, "baseball", new=home)
    regions = ["Europe & Central Asia", "East Asia & Pacific", "Latin America & Caribbean",
               "Middle East & North Africa", "South Asia", "Sub-Saharan Africa"]  # fmt: skip
    world: dict[str, Any] = {
        "LIFEEX": (15, 90), "PCGDP": (50, 250_000), "year": (1960, 2020), "oecd": (0, 1),
        "poor": (0, 1),
        "region": ["North America", *regions],
    }  # fmt: skip
    rich: dict[str, Column] = {"oecd": flag("OECD", True)}
    speeds = {"speed": (10, 80), "period": {"levels": [1, 2, 3]}, "warning": {"levels": [1, 2]}}
    homes = {"median": (10_000, 1_000_000), "sales": (1, 20_000), "year": (2000, 2015),
             "month": {"levels": list(range(1, 13))}, "listings": (0, 100_000),
             "volume": (100_000, 10_000_000_000)}  # fmt: skip
    firms: dict[str, Any] = {
        "patents": (0, 2_500), "sales": (0.01, 500_000), "capital": (0.01, 500_000),
        "employment": (0.001, 2_000), "institutions": (0, 100), "sp500": YES,
    }  # fmt: skip
    size = "np.log(sales) + np.log(capital) + institutions + sp500"
    return [
        played("homers", "hr ~ np.log1p(ab) + year", players, "poisson"),
        played("homer", "any ~ ab + I(ab ** 2) + year", players, "logit"),
        played("runs", "r ~ h + bb + hr", players),
        played("runs_square", "r ~ ab + I(ab ** 2)", players),
        played("hits", "h ~ ab", players),
        played(
            "hits_x3",
            "h ~ ab + bb + year",
            players | {"h": (0, 900), "ab": (0, 2_250), "bb": (0, 720), "year": (1000, 2900)},
        ),
        played("hits_log", "np.log1p(h) ~ np.log1p(ab)", players),
        played("homers_line", "hr ~ ab + bb + so + sb + year", players),
        played("homers_all", "hr ~ ab + bb + so + sb + year", players, "poisson"),
        played("steals", "sb ~ ab + I(ab ** 2) + hr", players),
        played("any_homer", "any ~ h + bb + so + sb + r", players, "logit"),
        held_out("txhousing", "sold", "sales ~ listings", homes),
        held_out("txhousing", "volumes", "np.log(volume) ~ np.log(sales) + year + month", homes),
        held_out("txhousing", "volumes_level", "volume ~ sales + median + year", homes),
        held_out("wlddev", "income", "np.log(PCGDP) ~ LIFEEX + I(LIFEEX ** 2) + region", world),
        held_out("wlddev", "life_square", "LIFEEX ~ PCGDP + I(PCGDP ** 2)", world),
        held_out(
            "wlddev",
            "poor",
            "poor ~ LIFEEX + year + oecd",
            world,
            "logit",
            new=rich | {"poor": _poor},
        ),
        held_out("wlddev", "life", "LIFEEX ~ np.log(PCGDP) + year + region", world),
        held_out("wlddev", "life_pair", "LIFEEX ~ np.log(PCGDP) * oecd + year", world, new=rich),
        held_out("wlddev", "life_line", "LIFEEX ~ PCGDP + year", world),
        held_out("amis", "speeds", "speed ~ period * warning", speeds),
        held_out("txhousing", "homes", "np.log(median) ~ np.log(sales) + year + month", homes),
        held_out("InstInnovation", "patents", f"patents ~ {size}", firms, "poisson"),
        held_out("InstInnovation", "patents_line", "patents ~ sales + capital + employment", firms),
        held_out("InstInnovation", "patents_log", f"np.log1p(patents) ~ {size}", firms),
    ]


def _poor(rows: pd.DataFrame) -> Any:
    return (rows["PCGDP"] < 1_500).where(rows["PCGDP"].notna()).astype(float)


def _as_number(made: Column) -> Column:
    return lambda rows: made(rows).astype(float)


def cases() -> list[Case]:
    """Return the real cases of the held-out half."""
    return [
        *centred(), *marriages_and_wages(), *schools(), *counts_and_shares(), *other_tables(),
    ]  # fmt: skip
