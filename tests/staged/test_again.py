"""Where one more look looks, and what it then gives."""

from __future__ import annotations

import numpy as np
import pytest

from dpreg.staged.again import locate_again
from dpreg.staged.law import LookLaw
from dpreg.staged.locate import Located
from dpreg.staged.predict import located_rows


def rows(n: int = 40_000, seed: int = 0):
    rng = np.random.default_rng(seed)
    mix = np.array([[0.3, 0.0, 0.0], [0.2, 0.2, 0.0], [0.0, 0.1, 0.25]])
    x = np.clip(rng.standard_normal((n, 3)) @ mix.T + [0.1, -0.2, 0.0], -1, 1)
    y = np.clip(0.1 + x @ [0.3, 0.0, -0.2] + rng.normal(0, 0.1, n), -1, 1)
    return x, y


def law_of(x, y, sd: float = 0.0) -> LookLaw:
    """The law of a look at the box itself whose noise is as good as none."""
    n, d = len(y), x.shape[1] + 1
    z = np.column_stack([np.ones(n), x])
    beta, *_ = np.linalg.lstsq(z, y, rcond=None)
    residual = float(np.mean((y - z @ beta) ** 2))
    return LookLaw(
        g=z.T @ y,
        k=z.T @ z,
        sampling=residual * z.T @ z,
        privacy=np.eye(d) * max(sd, 1e-6) ** 2,
        residual=residual,
        count=float(n),
        weight=1.0,
        theta=np.zeros(d),
        eigenvalues=np.linalg.eigvalsh(z.T @ z),
        noise_norm=sd,
        map_noise=np.zeros((d, d)),
        located=np.eye(d),
        center=np.zeros(d),
        moments=z.T @ z / n,
        heavy=1.0,
        degrees=None,
    )


@pytest.mark.parametrize("columns", [(1, 2, 3), (1, 3), (2,), ()])
def test_the_chosen_columns_are_white_there(columns):
    x, y = rows()
    found = locate_again(law_of(x, y), columns, 1.0)
    assert isinstance(found, Located)
    at = found.coordinates
    part = x[:, [j - 1 for j in columns]]
    u = part @ at.whitening.T + at.offset
    if columns:
        np.testing.assert_allclose(np.cov(u.T, bias=True).reshape(len(columns), -1),
                                   np.eye(len(columns)), atol=1e-6)  # fmt: skip
        np.testing.assert_allclose(u.mean(axis=0), 0, atol=1e-6)
    assert at.squared_radius == pytest.approx(1 + len(columns))
    z = np.column_stack([np.ones(len(y)), part])
    beta, *_ = np.linalg.lstsq(z, y, rcond=None)
    np.testing.assert_allclose([at.intercept, *at.slopes], beta, atol=1e-3)
    left = y - z @ beta
    assert at.width == pytest.approx(1.7 * left.std(), rel=0.01)
    cut = np.abs(located_rows(part, y, at)[:, -1]) >= 1
    assert cut.mean() < 0.2


def test_directions_that_the_noise_hides_are_not_blown_up():
    x, y = rows(1000)
    x[:, 1] = x[:, 0]
    clear = locate_again(law_of(x, y), (1, 2), 1.0)
    hidden = locate_again(law_of(x, y, sd=100.0), (1, 2), 1.0)
    assert np.abs(hidden.coordinates.whitening).max() < 10
    assert np.abs(clear.coordinates.whitening).max() > 100
    assert hidden.coordinates.squared_radius < clear.coordinates.squared_radius
    assert hidden.expected_square > clear.expected_square


def test_no_released_number_makes_it_raise():
    rng = np.random.default_rng(3)
    for _ in range(200):
        x, y = rows(50, int(rng.integers(1000)))
        law = law_of(x, y, sd=float(10 ** rng.uniform(-3, 5)))
        wild = rng.normal(size=(4, 4)) * 10 ** rng.uniform(-8, 3)
        for name, value in (
            ("moments", wild @ wild.T),
            ("k", law.k + wild * 50),
            ("located", wild),
            ("g", law.g * rng.normal(size=4)),
        ):
            object.__setattr__(law, name, value)
        found = locate_again(law, (1, 3), float(10 ** rng.uniform(-6, 1)))
        assert np.isfinite(found.coordinates.whitening).all()
        assert np.isfinite(found.coordinates.offset).all()
        assert 0 < found.coordinates.width < np.inf
        assert np.isfinite(found.expected_square)
