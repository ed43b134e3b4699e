"""Drawn tables on which least squares and a release may differ: x and y in the box [-1, 1].

Wages, fertility, prices, visits and counts are made up in the manner of textbook data; the rest are
normal or skewed columns with errors of many kinds. Some models are right; others leave out a curve
or an interaction, and the line that a release should find is then that of all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Rows = tuple[np.ndarray, np.ndarray]
Draw = Callable[[np.random.Generator, int], Rows]


@dataclass(frozen=True)
class Table:
    """A law of rows, how many are drawn, and which columns are levels of a factor."""

    name: str
    draw: Draw
    rows: int
    levels: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.name} {self.rows // 1000}k"


def boxed(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.clip(2 * (values - low) / (high - low) - 1, -1, 1)


def signed(values: np.ndarray) -> np.ndarray:
    return np.where(values, 1.0, -1.0)


def wages(curve: str, columns: str, spread: float = 0.0) -> Draw:
    """Log wages; `columns` holds s (a square of experience), f (female) and r (regions)."""

    def draw(rng: np.random.Generator, n: int) -> Rows:
        edu = np.clip(rng.normal(13.2, 2.9, n).round(), 0, 18)
        exper = np.clip(rng.gamma(2.0, 9.5, n).round(), -4, 63)
        female, afam = rng.random(n) < 0.45, rng.random(n) < 0.08
        region = rng.choice(4, n, p=[0.24, 0.25, 0.3, 0.21])
        mean = 4.3 + 0.085 * edu - 0.2 * afam - 0.15 * female
        mean += 0.06 * (region == 3) - 0.05 * (region == 2)
        if curve == "square":
            mean += 0.075 * exper - 0.0013 * exper**2
        else:
            z = np.clip(exper, 0, None)
            mean += 0.145 * z - 0.0055 * z**2 + 0.000095 * z**3 - 0.0000006 * z**4
            mean += 0.012 * np.maximum(edu - 12, 0) ** 1.3 - 0.03 * (edu - 13) * (exper < 8)
        scale = 0.58 * np.exp(spread * (exper / 60 - 0.3))
        error = rng.standard_t(6, n) * np.sqrt(4 / 6) - 0.25 * (rng.exponential(size=n) - 1)
        x = [boxed(edu, 0, 18), boxed(exper, -4, 63)]
        x += [boxed(exper**2, 0, 63**2)] if "s" in columns else []
        x += [signed(afam)] + ([signed(female)] if "f" in columns else [])
        x += [1.0 * (region == k) for k in (1, 2, 3)] if "r" in columns else []
        return np.column_stack(x), boxed(mean + scale * error, 2, 10)

    return draw


def fertility(rng: np.random.Generator, n: int) -> Rows:
    """Weeks worked, none or all of them, by rare columns of two values; interactions left out."""
    age = rng.integers(21, 36, n)
    afam, hispanic, other = (rng.random(n) < share for share in (0.052, 0.074, 0.056))
    more = rng.random(n) < 1 / (1 + np.exp(2.0 - 0.06 * age - 0.3 * hispanic))
    logit = -0.6 + 0.075 * (age - 30) - 0.004 * (age - 30) ** 2 - 0.45 * more + 0.6 * afam
    logit += 0.25 * other - 0.1 * hispanic - 0.3 * more * (age < 27) + 0.4 * more * afam
    weeks = np.where(rng.random(n) < 0.5, 52, rng.integers(1, 53, n))
    weeks = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), weeks, 0)
    pairs = [signed(one) for one in (afam, hispanic, other)]
    return np.column_stack([signed(more), boxed(age, 18, 40), *pairs]), boxed(weeks, 0, 52)


def earnings(rng: np.random.Generator, n: int) -> Rows:
    """Hourly earnings, skewed, by sex, year and both: a saturated model."""
    female, year = 1.0 * (rng.random(n) < 0.45), rng.integers(0, 7, n)
    mean = 16 + 0.4 * year - 3.0 * female - 0.1 * female * year
    scale = 8 * (1 + 0.15 * (0.05 * year - female))
    skewed = np.exp(0.5 * rng.standard_normal(n)) - np.exp(0.125)
    y = mean + scale * skewed / np.sqrt((np.exp(0.25) - 1) * np.exp(0.25))
    years = [1.0 * (year == k) for k in range(1, 7)]
    return np.column_stack([female, *years, *(female * one for one in years)]), boxed(y, 0, 80)


def graduates(rng: np.random.Generator, n: int) -> Rows:
    """Hourly earnings whose spread grows with their mean."""
    age, region = rng.integers(25, 35, n), rng.choice(4, n)
    degree, female = rng.random(n) < 0.42, rng.random(n) < 0.44
    mean = 1.9 + 0.025 * age + 0.4 * degree - 0.17 * female
    mean += 0.08 * (region == 1) - 0.05 * (region == 2)
    y = np.exp(mean + 0.48 * rng.standard_normal(n))
    regions = [1.0 * (region == k) for k in (1, 2, 3)]
    x = np.column_stack([boxed(age, 20, 65), signed(degree), signed(female), *regions])
    return x, boxed(y, 0, 100)


def houses(logs: bool) -> Draw:
    """Prices or their logarithms; living space is skewed, water fronts are rare."""

    def draw(rng: np.random.Generator, n: int) -> Rows:
        size = 0.42 * rng.standard_normal(n)

        def near(at: float, slope: float, sd: float, low: float, high: float) -> np.ndarray:
            return np.clip((at + slope * size + sd * rng.standard_normal(n)).round(), low, high)

        grade, beds = near(7.6, 2.1, 0.8, 3, 13), near(3.3, 1.3, 0.75, 0, 10)
        baths, state = near(8.4, 5.6, 1.6, 0, 32) / 4, near(3.4, 0, 0.65, 1, 5)
        view = np.where(rng.random(n) < 0.9, 0, rng.integers(1, 5, n))
        water = rng.random(n) < np.where(view >= 3, 0.12, 0.001)
        age = np.clip(rng.gamma(2.2, 20, n), 0, 115)
        y = 12.9 + 0.42 * size + 0.18 * size**2 + 0.19 * (grade - 7.6) + 0.02 * (grade - 7.6) ** 2
        y += 0.06 * baths - 0.03 * (beds - 3.3) + 0.06 * view + 0.4 * water + 0.05 * state
        y += 0.004 * age + 0.00002 * (age - 44) ** 2 * (grade > 8)
        y += 0.29 * rng.standard_t(8, n)
        bounds = ((0, 10), (0, 8), (1, 13), (0, 4), (1, 5), (0, 115))
        plain = zip((beds, baths, grade, view, state, age), bounds, strict=True)
        x = [boxed(np.exp(7.55 + size), 0, 8000), *(boxed(one, *ends) for one, ends in plain)]
        response = boxed(y, 10.5, 16) if logs else boxed(np.exp(y), 0, 5e6)
        return np.column_stack([*x, signed(water)]), response

    return draw


def visits(rng: np.random.Generator, n: int) -> Rows:
    """Visits to a doctor: overdispersed counts of a model with an exponential mean."""
    diseases = np.clip(rng.gamma(2.8, 4, n), 0, 58)
    coins = rng.choice([0, 3.26, 3.93, 4.56], n, p=[0.55, 0.17, 0.1, 0.18])
    paid = np.where(rng.random(n) < 0.3, 0, rng.normal(6.5, 0.8, n))
    limit = np.where(rng.random(n) < 0.45, 0, rng.normal(7, 0.9, n))
    plan, limits, good, fair, poor = (
        rng.random(n) < share for share in (0.26, 0.124, 0.36, 0.08, 0.015)
    )
    eta = 0.45 - 0.06 * coins - 0.2 * plan + 0.02 * paid - 0.02 * limit + 0.24 * limits
    eta += 0.035 * diseases - 0.0004 * diseases**2 + 0.03 * good + 0.2 * fair + 0.4 * poor
    y = rng.poisson(np.exp(eta) * rng.gamma(0.75, 1 / 0.75, n))
    x = [boxed(coins, 0, 5), boxed(paid, 0, 8), boxed(limit, 0, 9), boxed(diseases, 0, 60)]
    pairs = [signed(one) for one in (plan, limits, good, fair, poor)]
    return np.column_stack([*x, *pairs]), boxed(y, 0, 80)


def counts(rng: np.random.Generator, n: int) -> Rows:
    """A Poisson response by counts, rare columns and normal ones."""
    x = np.column_stack(
        [rng.poisson(k, n) for k in (0.3, 1, 2, 4)]
        + [rng.random(n) < share for share in (0.03, 0.2, 0.5)]
        + [rng.standard_normal(n) for _ in range(3)]
    ).astype(float)
    y = rng.poisson(np.exp(0.2 + x @ [0.1, 0.12, 0.05, 0.02, 0.3, -0.2, 0, 0.2, 0, 0]))
    low, high = np.repeat([0.0, -4.0], [7, 3]), np.array([5, 8, 10, 14, 1, 1, 1, 4, 4, 4])
    return np.clip(2 * (x - low) / (high - low) - 1, -1, 1), boxed(y, 0, 25)


ERRORS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "t3": lambda rng, n: rng.standard_t(3, n) / np.sqrt(3),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "lognormal": lambda rng, n: (np.exp(0.8 * rng.standard_normal(n)) - np.exp(0.32)) / 1.305,
    "uniform": lambda rng, n: rng.uniform(-1.7, 1.7, n),
    "two values": lambda rng, n: np.where(rng.random(n) < 0.3, 1.53, -0.65),
}


def plain(
    p: int, errors: str = "normal", rho: float = 0.5, x: str = "normal", curve: float = 0.0,
    growth: float = 0.0,
) -> Draw:  # fmt: skip
    """Correlated columns, R^2 about .5; a curve in the first, a spread that grows with the mean."""

    def draw(rng: np.random.Generator, n: int) -> Rows:
        index = np.arange(p)
        root = np.linalg.cholesky(rho ** np.abs(index[:, None] - index))
        z = rng.standard_normal((n, p)) @ root.T
        if x == "t3":
            columns = np.clip(z / np.sqrt(rng.chisquare(3, (n, 1)) / 3) / 10, -1, 1)
        elif x == "lognormal":
            columns = np.clip(np.exp(z) / 8 - 1, -1, 1)
        elif x == "gamma":
            columns = np.clip((rng.gamma(2, 1, (n, p)) + 0.5 * z) / 5 - 0.8, -1, 1)
        else:
            columns = np.clip(z / 4 + 0.2, -1, 1)
        mean = columns @ np.tile([1.0, -0.7, 0.4, 0.2, 0.0], p // 5 + 1)[:p]
        mean = (mean - mean.mean()) / mean.std()
        u = (columns[:, 0] - columns[:, 0].mean()) / columns[:, 0].std()
        mean += curve * (np.tanh(u) - u if x == "t3" else u**2 - 1)
        y = (mean + ERRORS[errors](rng, n) * np.exp(growth * mean)) / np.sqrt(2)
        return columns, np.clip(y / (9 if errors in ("lognormal", "t3") else 7), -1, 1)

    return draw


def factors(curve: float) -> Draw:
    """A factor with a rare level, normal columns; a curve and interactions are left out."""

    def draw(rng: np.random.Generator, n: int) -> Rows:
        level = rng.choice(6, n, p=[0.4, 0.25, 0.15, 0.12, 0.06, 0.02])
        z, w = rng.standard_normal((n, 3)), rng.random(n) < 0.1
        mean = 0.5 * z[:, 0] - 0.3 * z[:, 1] + 0.2 * level + 0.4 * w
        left = 0.3 * z[:, 0] * (level == 1) + 0.2 * (z[:, 0] ** 2 - 1) + 0.2 * z[:, 0] * w
        y = mean + curve * left + rng.standard_normal(n)
        x = [*(1.0 * (level == k) for k in range(1, 6)), np.clip(z / 4, -1, 1), signed(w)]
        return np.column_stack(x), np.clip(y / 7, -1, 1)

    return draw


LAWS: tuple[tuple[str, Draw, tuple[int, ...], tuple[int, ...]], ...] = (
    ("wages, square", wages("square", "sfr"), (20_000, 100_000), (5, 6, 7)),
    ("wages, wrong square, few", wages("quartic", "s"), (28_000, 300_000), ()),
    ("wages, wrong square", wages("quartic", "sfr", 0.3), (28_000,), (5, 6, 7)),
    ("wages, no square", wages("square", "fr"), (20_000, 100_000), (4, 5, 6)),
    ("fertility", fertility, (60_000, 250_000), ()),
    ("earnings", earnings, (20_000, 100_000), tuple(range(13))),
    ("graduates", graduates, (8_000, 60_000), (3, 4, 5)),
    ("houses, log", houses(True), (21_000,), ()),
    ("houses", houses(False), (21_000,), ()),
    ("visits", visits, (20_000, 100_000), ()),
    ("counts", counts, (50_000,), ()),
    ("normal, p=5", plain(5), (4_000, 20_000, 300_000), ()),
    ("normal, p=8", plain(8), (20_000,), ()),
    ("normal, p=15", plain(15), (20_000, 100_000), ()),
    ("t3 errors", plain(8, "t3"), (20_000,), ()),
    ("exponential errors", plain(8, "exponential"), (20_000,), ()),
    ("lognormal errors", plain(8, "lognormal"), (20_000, 100_000), ()),
    ("skewed, growing", plain(8, "exponential", growth=0.4), (20_000, 100_000), ()),
    ("uniform errors", plain(8, "uniform"), (20_000,), ()),
    ("two errors", plain(6, "two values"), (60_000,), ()),
    ("curve", plain(6, curve=0.3), (30_000, 300_000), ()),
    ("curve, gamma columns", plain(6, x="gamma", curve=0.15), (30_000,), ()),
    ("lognormal columns", plain(5, x="lognormal", rho=0.3), (20_000,), ()),
    ("saturating, t3 columns", plain(5, x="t3", curve=0.3), (20_000,), ()),
    ("factors", factors(0.0), (20_000,), (0, 1, 2, 3, 4)),
    ("factors, curve", factors(1.0), (20_000, 200_000), (0, 1, 2, 3, 4)),
)

TABLES = tuple(
    Table(name, draw, rows, levels) for name, draw, sizes, levels in LAWS for rows in sizes
)
