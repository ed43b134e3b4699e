"""Real tables that anyone can get: packages of R as Debian has them, statsmodels, the data folder.

R writes its tables out once, into the cache. `SOURCES` says where each comes from.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import pandas as pd

from benchmarks._holds_case import cache
from benchmarks._uci import load_uci
from dpreg import datasets

_R = {
    "CPS1988": ("AER", "wages of men, US Current Population Survey 1988"),
    "CPSSW8": ("AER", "hourly earnings, US Current Population Survey 2004"),
    "CPSSW9204": ("AER", "hourly earnings at 25 to 34, same survey, 1992 and 2004"),
    "CPSSW3": ("AER", "hourly earnings, same survey, 1992 to 2004"),
    "Fertility": ("AER", "weeks worked by mothers, US census 1980"),
    "Fertility2": ("AER", "mothers of the US census 1980, 30,000 of them"),
    "GSS7402": ("AER", "children of women, US General Social Survey 1974 to 2002"),
    "HealthInsurance": ("AER", "US Medical Expenditure Panel Survey 1996"),
    "SmokeBan": ("AER", "indoor workers, US National Health Interview Survey 1991, 1993"),
    "DoctorVisits": ("AER", "Australian Health Survey 1977-78"),
    "Vocab": ("carData", "a vocabulary test, US General Social Survey 1974 to 2016"),
    "MplsStops": ("carData", "stops by the police of Minneapolis, 2017"),
    "SLID": ("carData", "Canadian Survey of Labour and Income Dynamics 1994, Ontario"),
    "diamonds": ("ggplot2", "prices of diamonds, diamondse.info"),
    "txhousing": ("ggplot2", "house sales of Texas by city and month, Texas A&M University"),
    "storms": ("dplyr", "Atlantic storms since 1975, NOAA"),
    "gss_cat": ("forcats", "US General Social Survey 2000 to 2014"),
    "InstEval": ("lme4", "ratings of lecturers by students, ETH Zurich"),
    "Chem97": ("mlmRev", "A-level chemistry, England 1997"),
    "star": ("mlmRev", "class sizes, Tennessee's Project STAR"),
    "egsingle": ("mlmRev", "mathematics in primary schools, US Sustaining Effects Study"),
    "Hsb82": ("mlmRev", "mathematics, US High School and Beyond 1982"),
    "LaborSupply": ("plm", "hours and wages of 532 men, PSID 1979 to 1988"),
    "baseball": ("plyr", "seasons of batters, baseball-databank.org"),
    "Bundesliga": ("vcd", "German football since 1963"),
    "amis": ("boot", "speeds of cars on warned and other roads, Cambridge"),
    "flchain": ("survival", "free light chains and deaths, Olmsted County"),
    "wlddev": ("collapse", "World Bank, countries by year"),
    "InstInnovation": ("sandwich", "patents and institutional owners of US firms"),
}
"""Tables of R: the package, and what they hold."""
_FOLDER = {
    "kc_house": "house sales in King County, OpenML 42092",
    "bike": "hourly rentals, UCI Bike Sharing, columns centred",
    "elevators": "control of an aircraft, Torgo's Elevators, columns centred",
    "airfoil": "UCI Airfoil Self-Noise, columns centred",
    "concrete": "UCI Concrete Compressive Strength, columns centred",
    "prostate": "The Elements of Statistical Learning",
}
_STATSMODELS = {
    "randhie": "RAND Health Insurance Experiment",
    "fair": "marriages and affairs, Redbook 1974",
}


@dataclass(frozen=True)
class Source:
    """Where a table comes from, its rows, and what tells them from others."""

    where: str
    holds: str
    read: Callable[[], pd.DataFrame]
    mark: Callable[[], str]


def _r_source(name: str, package: str, holds: str) -> Source:
    def path() -> str:
        kept = cache("tables") / f"{package}-{name}.csv"
        if not kept.exists():
            part = kept.with_suffix(f".{os.getpid()}.part")  # cases of one table run side by side
            program = (
                f"data(list = '{name}', package = '{package}'); d <- as.data.frame({name}); "
                f"write.csv(d, '{part}', row.names = FALSE)"
            )
            subprocess.run(["Rscript", "-e", program], check=True, capture_output=True)
            part.replace(kept)
        return str(kept)

    @lru_cache(1)
    def mark() -> str:
        with open(path(), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def read() -> pd.DataFrame:
        return pd.read_csv(path(), low_memory=False, keep_default_na=False, na_values=["NA"])

    return Source(f"R package {package}", holds, read, mark)


def _folder_source(name: str, holds: str) -> Source:
    def read() -> pd.DataFrame:
        if name in ("kc_house", "prostate"):
            loaded = getattr(datasets, f"load_{name}")()
        else:
            loaded = load_uci(name)
        frame: pd.DataFrame = loaded.data
        return frame

    return Source("the folder DPREG_DATA", holds, read, lambda: name)


def _statsmodels_source(name: str, holds: str) -> Source:
    def read() -> pd.DataFrame:
        import statsmodels.api as sm

        frame: pd.DataFrame = getattr(sm.datasets, name).load_pandas().data
        return frame

    return Source("statsmodels", holds, read, lambda: importlib.metadata.version("statsmodels"))


SOURCES: dict[str, Source] = {
    **{name: _r_source(name, *told) for name, told in _R.items()},
    **{name: _folder_source(name, holds) for name, holds in _FOLDER.items()},
    **{name: _statsmodels_source(name, holds) for name, holds in _STATSMODELS.items()},
}
"""Every real table by its name."""
