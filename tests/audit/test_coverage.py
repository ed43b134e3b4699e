"""Coverage of 95% intervals, by simulation at moment level.

What a fit sees of a data set is (X'X, X'y, y'y). For rows x ~ N(0, S) with an intercept and
y = x'beta + N(0, s^2) these have the laws drawn here directly, whatever n: the count binomial
(incomplete rows), X'X from a mean and a Wishart matrix (Bartlett), X'y given X'X normal with
covariance s^2 X'X, the residual sum of squares s^2 chi-square. The release's noise depends on
no data, so nothing is lost against rows but their bounds (columns of standard deviation 0.577,
that of a uniform column on [-1, 1]). Seeded: the same law, not private.
"""

from fractions import Fraction

import numpy as np
import pytest
from oracles.accounts import release_gram
from oracles.bounds import score_range
from oracles.gram import conf_int
from oracles.scores import quadratic_scores
from scipy.stats import norm

from dpreg.estimation.inference import fit_gram
from dpreg.moments import Moments
from dpreg.privacy.mechanisms.choice import choose
from dpreg.selection.probabilities import useless_term_penalty

SD, NOISE = 0.577, 0.2
BUDGETS = {"pure": ("1", "0"), "delta": ("1", "1e-6"), "small": ("0.3", "1e-6")}
NEIGHBORS = ("replace-one", "add-remove")


def coefficients(p):
    """Intercept first; the slopes' squares sum to at most 0.15, a fifth of them are zero."""
    pattern = np.tile([0.3, -0.2, 0.1, 0.05, 0.0], 3)[:p] * min(1.0, (5 / p) ** 0.5)
    return np.append(0.1, pattern)


def draw_moments(rng, n, beta, correlation, missing):
    """One data set's moments, by the laws in the module's docstring."""
    p = len(beta) - 1
    count = rng.binomial(n, 1 - missing)
    root = np.linalg.cholesky(SD**2 * ((1 - correlation) * np.eye(p) + correlation))
    mean = root @ rng.standard_normal(p) / np.sqrt(count)
    bartlett = np.tril(rng.standard_normal((p, p)), -1)
    bartlett[np.diag_indices(p)] = np.sqrt(rng.chisquare(count - 1 - np.arange(p)))
    spread = root @ bartlett
    gram = np.empty((p + 1, p + 1))
    gram[0, 0] = count
    gram[0, 1:] = gram[1:, 0] = count * mean
    gram[1:, 1:] = spread @ spread.T + count * np.outer(mean, mean)
    errors = NOISE * np.linalg.cholesky(gram) @ rng.standard_normal(p + 1)
    cross = gram @ beta + errors
    fitted = cross @ np.linalg.solve(gram, cross)
    full = np.empty((p + 2, p + 2))
    full[:-1, :-1] = gram
    full[:-1, -1] = full[-1, :-1] = cross
    full[-1, -1] = fitted + NOISE**2 * rng.chisquare(count - p - 1)
    units = np.rint(full * 2.0**40)
    return Moments(n, tuple(tuple(int(cell) for cell in row) for row in units))


def run(
    n, p, budget, neighbors, sets, seed, *, draws=400, correlation=0.5, missing=0.25, **options
):
    """Return hits (sets, p + 1), the share of flagged fits, and the fits' own hits if naive."""
    rng = np.random.default_rng(seed)
    eps, delta = map(Fraction, BUDGETS[budget])
    beta = coefficients(p)
    hits, naive, flagged = [], [], 0
    for _ in range(sets):
        moments = draw_moments(rng, n, beta, correlation, missing)
        noisy = release_gram(
            moments, range(p + 1), eps=eps, delta=delta, neighbors=neighbors, rng=rng, **options
        )
        fit = fit_gram(noisy, rows=n if neighbors == "replace-one" else None, draws=draws)
        low, high = conf_int(fit).T
        hits.append((low <= beta) & (beta <= high))
        half = norm.ppf(0.975) * np.sqrt(np.diag(fit.sampling.whole))
        naive.append(np.abs(fit.beta - beta) <= half)
        flagged += fit.ridged
    return np.array(hits), flagged / sets, np.array(naive)


@pytest.mark.parametrize(
    ("n", "p", "budget", "neighbors"),
    [
        (1_000, 1, "pure", "replace-one"),
        (10_000, 5, "delta", "replace-one"),
        (10_000, 5, "pure", "add-remove"),
        (1_000, 5, "small", "replace-one"),
        (100_000, 15, "delta", "replace-one"),
    ],
)
def test_small_dose(n, p, budget, neighbors):
    hits, flagged, _ = run(n, p, budget, neighbors, 150, seed=1)
    assert hits.mean() > 0.92
    if flagged < 0.05:
        assert hits.mean() < 0.98


def test_ignoring_the_noise_does_not_cover():
    """The audit is able to fail: intervals from sampling error alone, at a moderate n."""
    hits, _, naive = run(10_000, 5, "delta", "replace-one", 150, seed=2)
    assert naive.mean() < 0.85 < hits.mean()


def test_noise_stated_at_half_does_not_cover(monkeypatch):
    import dpreg.estimation.gram as gram

    honest = gram._gaussian_plan

    def understated(*arguments):
        plan = honest(*arguments)
        return gram._Plan(plan.bound, tuple(sd / 2 for sd in plan.sds), plan.draw)

    monkeypatch.setattr(gram, "_PLANS", {**gram._PLANS, "gaussian": understated})
    hits, _, _ = run(10_000, 5, "delta", "replace-one", 150, seed=3, noise="gaussian")
    assert hits.mean() < 0.87


@pytest.mark.audit
@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("p", [1, 5, 15])
@pytest.mark.parametrize("n", [1_000, 10_000, 100_000])
def test_coverage(n, p, budget, neighbors, record_property):
    hits, flagged, _ = run(n, p, budget, neighbors, 2_000, seed=100 * p + n)
    pooled, each = hits.mean(), hits.mean(axis=0)
    record_property("coverage", float(pooled))
    print(
        f"\ncoverage n={n} p={p} {budget} {neighbors}: pooled {pooled:.4f}, coefficients "
        f"{each.min():.4f}-{each.max():.4f}, flagged {flagged:.3f}"
    )
    if flagged > 0.05:
        assert pooled >= 0.93
    else:
        assert 0.935 <= pooled <= 0.965
        assert each.min() >= 0.93
        assert each.max() <= 0.97


def run_after_selection(n, budget, neighbors, sets, seed, *, draws=400):
    """Select among the 32 models of p = 5 on one coin-split half, fit on the other.

    The halves' rows are independent given their sizes. The truth for a selected model is the best
    linear prediction by its own columns; under normal columns it is again linear, homoskedastic.
    """
    rng = np.random.default_rng(seed)
    eps, delta = map(Fraction, BUDGETS[budget])
    beta, rho = coefficients(5), Fraction(1)
    models = (np.arange(32)[:, None] >> np.arange(5) & 1).astype(bool)
    columns = np.column_stack([np.ones(32, dtype=bool), models])
    width = score_range(rho, neighbors, 1)
    charge = round(useless_term_penalty(5, Fraction("0.1"), eps / width, "permute-and-flip"))
    shape = 0.5 * np.eye(5) + 0.5
    hits: dict[tuple[int, ...], list[np.ndarray]] = {}
    for _ in range(sets):
        first = int(rng.binomial(n, 0.5))
        select = draw_moments(rng, first, beta, 0.5, 0.25)
        fit_rows = draw_moments(rng, n - first, beta, 0.5, 0.25)
        charges = models.sum(axis=1) * np.int64(charge)
        scores = quadratic_scores(select, columns, rho) + charges
        picked = models[choose(scores, eps=eps, score_range=width,
                               mechanism="permute-and-flip", rng=rng)]  # fmt: skip
        inside = np.flatnonzero(picked)
        slopes = np.linalg.solve(shape[np.ix_(inside, inside)], shape[inside] @ beta[1:])
        truth = np.append(beta[0], slopes)
        noisy = release_gram(
            fit_rows, (0, *(inside + 1)), eps=eps, delta=delta, neighbors=neighbors, rng=rng
        )
        low, high = conf_int(fit_gram(noisy, draws=draws)).T
        hits.setdefault(tuple(inside.tolist()), []).append((low <= truth) & (truth <= high))
    return hits


def test_small_dose_after_selection():
    hits = run_after_selection(20_000, "delta", "replace-one", 120, seed=4)
    pooled = np.concatenate([np.concatenate(found) for found in hits.values()])
    assert 0.92 < pooled.mean() < 0.98


@pytest.mark.audit
@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("n", [10_000, 100_000])
def test_coverage_after_selection(n, budget, neighbors):
    hits = run_after_selection(n, budget, neighbors, 2_000, seed=n)
    pooled = np.concatenate([np.concatenate(found) for found in hits.values()])
    print(f"\nafter selection n={n} {budget} {neighbors}: pooled {pooled.mean():.4f}")
    for model, found in sorted(hits.items(), key=lambda item: -len(item[1])):
        if len(found) >= 200:
            share = np.concatenate(found)
            print(f"  given {model}: {share.mean():.4f} over {len(found)} draws")
            slack = 4 * (0.95 * 0.05 / len(found)) ** 0.5
            assert share.mean() >= 0.95 - max(0.015, slack)
    assert pooled.mean() >= 0.935
    if n == 100_000:
        assert pooled.mean() <= 0.965
