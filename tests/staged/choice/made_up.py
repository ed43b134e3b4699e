"""Released laws made up in floats: nothing here is private."""

from dataclasses import dataclass

import numpy as np

from dpreg.selection.space import Space


@dataclass(frozen=True)
class Law:
    """A stand-in for a released law."""

    g: np.ndarray
    k: np.ndarray
    covariance: np.ndarray
    degrees: int | None
    eigenvalues: np.ndarray
    noise_norm: float


def make_law(rng, truth, *, rows=2000, correlation=0.3, sigma=1.0, noise=1.0, degrees=None):
    """Draw a law for y = (1, x)'truth + error: equicorrelated x, noise on every moment."""
    p = len(truth) - 1
    cov = np.full((p, p), correlation) + (1 - correlation) * np.eye(p)
    x = rng.standard_normal((rows, p)) @ np.linalg.cholesky(cov).T
    x = np.column_stack([np.ones(rows), x])
    return law_of(rng, x, truth, sigma=sigma, noise=noise, degrees=degrees)


def law_of(rng, x, truth, *, sigma=1.0, noise=1.0, degrees=None):
    """Draw a law for given rows."""
    d = x.shape[1]
    moments = x.T @ x
    cells = rng.standard_normal((d, d)) * noise
    cells = np.triu(cells) + np.triu(cells, 1).T
    released = moments + cells
    privacy = noise**2 * (np.eye(d) * (1 + truth @ truth) + np.outer(truth, truth))
    privacy -= noise**2 * np.diag(truth**2)
    values, vectors = np.linalg.eigh(released)
    positive = (vectors * np.maximum(values, 0)) @ vectors.T
    h = x.T @ (x @ truth + sigma * rng.standard_normal(len(x))) + noise * rng.standard_normal(d)
    return Law(
        g=h,
        k=released,
        covariance=sigma**2 * positive + privacy,
        degrees=degrees,
        eigenvalues=values,
        noise_norm=2 * noise * np.sqrt(d),
    )


def plain_space(q, **limits):
    """Return a space of q single columns beside the intercept."""
    return Space(
        units=tuple(f"x{i}" for i in range(1, q + 1)),
        unit_columns=tuple((i,) for i in range(1, q + 1)),
        keep_columns=(0,),
        **limits,
    )
