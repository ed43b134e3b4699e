"""Measure the claims of Smith's talk: `python -m benchmarks.classic [table ...]`.

Tables: mean, histogram, aggregate; coverage is in tests/audit/test_classic_coverage.py. Runs are
seeded (not private; the same laws), so that the tables repeat.
"""

import sys
from collections.abc import Callable

import numpy as np
from scipy import stats
from scipy.special import digamma, expit, polygamma

from dpreg.api.aggregate import sample_aggregate
from dpreg.api.classic import dp_mean
from dpreg.api.histogram import dp_histogram

Floats = np.ndarray


def table_mean() -> None:
    """Noise of the private mean against sampling error: eps = 1."""
    print(
        "\nThe mean: standard errors of sampling and of privacy, eps = 1, x ~ N(3, 1) in (-5, 10)"
    )
    print(f"{'n':>9}  {'relation':<12}{'sampling':>11}{'privacy':>11}{'ratio':>8}")
    rng = np.random.default_rng(0)
    for n in (100, 1_000, 10_000, 100_000, 1_000_000):
        x = rng.normal(3, 1, n)
        for neighbors in ("replace-one", "add-remove"):
            one = dp_mean(x, bounds=(-5, 10), eps=1, neighbors=neighbors, unsafe_seed=n)
            privacy = float(one.bse_privacy.iloc[0])
            ratio = privacy * np.sqrt(n)  # the true sampling error is 1/sqrt(n)
            print(f"{n:>9}  {neighbors:<12}{n**-0.5:>11.5f}{privacy:>11.5f}{ratio:>8.3f}")


class Mixture:
    """Two truncated normals on [0, 1]."""

    parts = (
        (0.6, stats.truncnorm(-3.75, 8.75, loc=0.3, scale=0.08)),
        (0.4, stats.truncnorm(-7.0, 3.0, loc=0.7, scale=0.1)),
    )

    def cdf(self, x: Floats) -> Floats:
        return sum(w * part.cdf(x) for w, part in self.parts)

    def pdf(self, x: Floats) -> Floats:
        return sum(w * part.pdf(x) for w, part in self.parts)

    def rvs(self, size: int, random_state: np.random.Generator) -> Floats:
        first = random_state.random(size) < self.parts[0][0]
        draws = [part.rvs(size, random_state=random_state) for _, part in self.parts]
        return np.where(first, *draws)


DENSITIES = {
    "beta(2, 5)": stats.beta(2, 5),
    "normal, sd 1/8": stats.truncnorm(-4, 4, loc=0.5, scale=0.125),
    "two normals": Mixture(),
}


def table_histogram(largest: int = 1_000_000) -> None:
    """Integrated squared error against the best fixed width, which knows the density."""
    print("\nHistograms: mean ISE, eps = 1, replace-one, bins chosen privately")
    head = f"{'density':<16}{'n':>9}{'runs':>6}{'best bins':>11}{'its ISE':>11}"
    print(head + f"{'bins':>6}{'ISE':>11}{'ratio':>8}")
    grid = np.linspace(0, 1, 5041)
    for name, law in DENSITIES.items():
        mass = np.diff(law.cdf(grid))
        square = float(np.mean(law.pdf((np.arange(10**6) + 0.5) / 10**6) ** 2))

        def error(shares: Floats, mass: Floats = mass, square: float = square) -> float:
            d = shares.size
            truth = _merged(mass, d)
            return float(d * (shares @ shares) - 2 * d * (shares @ truth) + square)

        divisors = [d for d in range(1, 1261) if 5040 % d == 0]
        n = 1_000
        while n <= largest:
            runs = 100 if n < 10**6 else 40
            rng = np.random.default_rng(n)
            plain: dict[int, list[float]] = {d: [] for d in divisors}
            ours, sizes = [], []
            for seed in range(runs):
                x = law.rvs(n, random_state=rng)
                fine = np.bincount(np.minimum((x * 5040).astype(int), 5039), minlength=5040) / n
                for d in divisors:
                    plain[d].append(error(_merged(fine, d)))
                one = dp_histogram(x, bounds=(0, 1), eps=1, unsafe_seed=seed)
                sizes.append(one.probabilities.size)
                ours.append(_error_of(one.probabilities, law, square))
            best = min(divisors, key=lambda d: np.mean(plain[d]))
            least, got = np.mean(plain[best]), np.mean(ours)
            row = f"{name:<16}{n:>9}{runs:>6}{best:>11}{least:>11.3e}"
            print(row + f"{np.median(sizes):>6.0f}{got:>11.3e}{got / least:>8.2f}", flush=True)
            n *= 10


def _merged(fine: Floats, d: int) -> Floats:
    return fine.reshape(d, -1).sum(axis=1)


def _error_of(shares: Floats, law: Mixture, square: float) -> float:
    d = shares.size
    truth = np.diff(law.cdf(np.linspace(0, 1, d + 1)))
    return float(d * (shares @ shares) - 2 * d * (shares @ truth) + square)


def gamma_shape(x: Floats) -> float:
    s = np.log(x.mean()) - np.log(x).mean()
    shape = (3 - s + np.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s)
    for _ in range(4):
        shape -= (np.log(shape) - digamma(shape) - s) / (1 / shape - polygamma(1, shape))
    return float(shape)


def logistic_slope(rows: Floats) -> float:
    """Maximum likelihood of a logistic regression with an intercept, by Newton's method."""
    x, y = np.column_stack([np.ones(len(rows)), rows[:, 0]]), rows[:, 1]
    beta = np.zeros(2)
    for _ in range(25):
        p = expit(x @ beta)
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x, x.T @ (y - p))
        beta = beta + step
        if np.abs(step).max() < 1e-9:
            return float(beta[1])
    return float("nan")


def logistic_rows(rng: np.random.Generator, n: int) -> Floats:
    x = rng.normal(size=n)
    return np.column_stack([x, rng.random(n) < expit(0.5 + x)])


def _logistic_variance() -> float:
    x = np.linspace(-9, 9, 20_001)
    p = expit(0.5 + x)
    weight = p * (1 - p) * stats.norm.pdf(x) * (x[1] - x[0])
    information = np.array([[weight.sum(), weight @ x], [weight @ x, weight @ x**2]])
    return float(np.linalg.inv(information)[1, 1])


EXAMPLES: dict[str, tuple[Callable, Callable, float, float, tuple[float, float]]] = {
    "gamma shape": (
        gamma_shape,
        lambda rng, n: rng.gamma(2.0, size=n),
        2.0,
        1 / (polygamma(1, 2.0) - 0.5),
        (0, 20),
    ),
    "logistic slope": (logistic_slope, logistic_rows, 1.0, _logistic_variance(), (-10, 10)),
}


def table_aggregate(largest: int = 1_000_000) -> None:
    """Mean squared error over the variance of maximum likelihood, corrected and plain."""
    print("\nSample and aggregate: mean squared error / variance of maximum likelihood, eps = 1")
    head = f"{'example':<16}{'n':>9}{'eps n^1/4':>11}{'blocks':>8}{'runs':>6}"
    print(head + f"{'corrected':>11}{'(se)':>7}{'plain':>8}{'(se)':>7}")
    for name, (estimator, draw, truth, variance, bounds) in EXAMPLES.items():
        for n, runs in ((10_000, 100), (30_000, 100), (100_000, 60), (300_000, 40), (10**6, 40)):
            if n > largest:
                break
            rng = np.random.default_rng(n)
            squares: dict[bool, list[float]] = {True: [], False: []}
            for seed in range(runs):
                rows = draw(rng, n)
                for correct, found in squares.items():
                    one = sample_aggregate(
                        estimator,
                        rows,
                        bounds=bounds,
                        eps=1,
                        correct_bias=correct,
                        unsafe_seed=seed,
                    )
                    found.append((one.params.iloc[0] - truth) ** 2 * n / variance)
            row = f"{name:<16}{n:>9}{n**0.25:>11.1f}{one.blocks:>8}{runs:>6}"
            for correct, width in ((True, 11), (False, 8)):
                found = np.array(squares[correct])
                row += f"{found.mean():>{width}.2f}{found.std() / runs**0.5:>7.2f}"
            print(row, flush=True)


TABLES = {"mean": table_mean, "histogram": table_histogram, "aggregate": table_aggregate}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or TABLES:
        TABLES[chosen]()
