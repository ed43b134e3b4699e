"""Laws of the looks' noises by quadrature and enumeration, written without the package's formulas.

- V(n), the variance-gamma law with characteristic function (1 + t^2)^-n: for two sets of 2n degrees
  of freedom, u'Nu = 2 V(nu/2) where u'Cu = 1, and N_ij = sqrt(c_i c_j) V(nu). Its density is
  |x|^(n-1/2) K_(n-1/2)(|x|) / (sqrt(pi) 2^(n-1/2) Gamma(n)).
- tr(TN) has the characteristic function det(I + 4 (C^1/2 T C^1/2)^2)^(-nu/2) at 1.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, kve
from scipy.stats import chi2, chisquare, kstest


def log_density(x, n):
    """Log density of V(n)."""
    x = np.abs(np.asarray(x, dtype=float))
    order = n - 0.5
    bessel = np.log(kve(order, x)) - x
    return order * np.log(x) + bessel - math.log(math.pi) / 2 - order * math.log(2) - gammaln(n)


@lru_cache
def cdf(n, reach=60.0, points=100_001):
    """Distribution function of V(n), as a vectorised function: Simpson's rule on a fine grid."""
    x = np.linspace(0.0, reach, points)
    middle = (x[1:] + x[:-1]) / 2
    density = np.exp(log_density(np.maximum(x, 1e-12), n))
    halves = np.exp(log_density(middle, n))
    steps = (density[1:] + density[:-1] + 4 * halves) * (x[1] - x[0]) / 6
    upper = np.concatenate([[0.0], np.cumsum(steps)])
    assert abs(upper[-1] - 0.5) < 1e-6

    def function(value):
        value = np.asarray(value, dtype=float)
        return 0.5 + np.sign(value) * np.interp(np.abs(value), x, upper)

    return function


def floor_p_value(drawn, distribution, scale):
    """Chi-square of floors against floor(scale V), cells expected below 8 times pooled."""
    drawn = np.asarray(drawn, dtype=float)
    edges = np.arange(drawn.min() - 1, drawn.max() + 3)
    probability = np.diff(distribution(edges / scale))
    expected = probability * len(drawn)
    keep = np.flatnonzero(expected >= 8)
    low, high = keep[0], keep[-1] + 1
    counts = np.histogram(drawn, np.append(edges[low:high], edges[high]))[0].astype(float)
    # the last bin of a histogram is closed: its right edge belongs to the rest
    counts[-1] = (drawn == edges[high - 1]).sum()
    inside = expected[low:high]
    seen = np.append(counts, len(drawn) - counts.sum())
    wanted = np.append(inside, len(drawn) - inside.sum())
    return chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue


def spread_p_value(values, distribution):
    """Kolmogorov-Smirnov test of a fine sample."""
    return kstest(values, distribution).pvalue


def trace_law(T, c, nu):
    """E cos(tr(TN)) for the difference of two Wisharts of nu degrees and scale diag(c)."""
    root = np.diag(np.sqrt(c))
    inner = root @ T @ root
    return np.linalg.det(np.eye(len(c)) + 4 * inner @ inner) ** (-nu / 2)


def two_look_delta(eps, first, second):
    """Exact delta of two discrete Gaussian looks of one integer cell each, the second adaptive.

    `first` is (shift, scale); `second(v)` gives (shift, scale) for an array v of the first look's
    values. The first query is 0 on one table and `shift` on its neighbour.
    """
    shift, scale = first
    values, p, q = _discrete(shift, scale)
    shifts, scales = second(values)
    delta = 0.0
    for pair in sorted({*zip(shifts.tolist(), scales.tolist(), strict=True)}):
        mine = (shifts == pair[0]) & (scales == pair[1])
        _, p2, q2 = _discrete(*pair)
        over = np.outer(p[mine], p2) - np.outer(math.exp(eps) * q[mine], q2)
        delta += float(over[over > 0].sum())
    return delta


def _discrete(shift, scale):
    reach = int(8 * scale) + abs(int(shift))
    k = np.arange(-reach, reach + 1)
    total = np.exp(-(k**2) / (2 * scale**2)).sum()
    return (
        k,
        np.exp(-(k**2) / (2 * scale**2)) / total,
        np.exp(-((k - shift) ** 2) / (2 * scale**2)) / total,
    )


@lru_cache(maxsize=4096)
def quadratic_survival(q, df, nu):
    """Return P(chi2_df chi2_(2 nu)/(2 nu) > q): the law of matrix-Laplace noise's quadratic form.

    The expectation over y = chi2_(2 nu) by the trapezoidal rule in log y, where the integrand is
    smooth and dies out on both sides: 16 digits or so, tails included.
    """
    if q <= 0:
        return 1.0
    y, mass = _nodes(2 * nu)
    return float(np.sum(mass * chi2.sf(2 * nu * q / y, df)))


@lru_cache(maxsize=64)
def _nodes(df):
    """Return points y and weights of a chi2_df expectation: equal steps in log y."""
    log_y = np.linspace(math.log(df) - 60.0 / math.sqrt(df) - 4.0, math.log(df + 400.0) + 4.0, 2000)
    y = np.exp(log_y)
    mass = chi2.pdf(y, df) * y * (log_y[1] - log_y[0])
    keep = mass > 1e-300
    return y[keep], mass[keep] / math.fsum(mass[keep])
