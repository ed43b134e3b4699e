"""Exact laws of the selection mechanisms for a handful of candidates, by plain summation."""

from itertools import combinations
from math import exp, log, prod


def permute_and_flip(gaps):
    """P(r) by inclusion and exclusion over the subsets of the others; gaps = (s - min s) / b."""
    p = [exp(-gap) for gap in gaps]
    law = []
    for r in range(len(p)):
        others = p[:r] + p[r + 1 :]
        total = 0.0
        for size in range(len(p)):
            for chosen in combinations(others, size):
                total += (-1) ** size * prod(chosen) / (size + 1)
        law.append(p[r] * total)
    return law


def exponential(gaps):
    weights = [exp(-gap) for gap in gaps]
    return [weight / sum(weights) for weight in weights]


def laplace(scores, scale, reach=60):
    """P(r) for discrete Laplace noise of a small scale, ties to the lowest index."""
    ratio = exp(-1 / scale)
    head = (1 - ratio) / (1 + ratio)

    def mass(z):
        return head * ratio ** abs(z)

    def at_least(z):
        return ratio**z / (1 + ratio) if z > 0 else 1 - ratio ** (1 - z) / (1 + ratio)

    span = int(reach * scale) + max(scores) - min(scores)
    law = []
    for r, score in enumerate(scores):
        total = 0.0
        for value in range(min(scores) - span, max(scores) + span + 1):
            first = prod(at_least(value - s + 1) for s in scores[:r])
            total += (
                mass(value - score) * first * prod(at_least(value - s) for s in scores[r + 1 :])
            )
        law.append(total)
    return law


def law(mechanism, scores, scale):
    """The law of the index drawn for integer scores, lowest best, at noise scale b."""
    if mechanism == "laplace":
        return laplace(scores, scale)
    gaps = [(s - min(scores)) / scale for s in scores]
    return {"permute-and-flip": permute_and_flip, "exponential": exponential}[mechanism](gaps)


def worst_log_ratio(first, second):
    return max(abs(log(a / b)) for a, b in zip(first, second, strict=True))
