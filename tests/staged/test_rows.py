"""Located rows: their own, bit for bit, and within the norm, whatever the cells are."""

from __future__ import annotations

import hashlib
import itertools
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from formula import test_leaks as leaks

from dpreg.errors import ArgumentError
from dpreg.formula.design import build_design
from dpreg.moments import CELL_BITS, read_moments, to_grid
from dpreg.privacy.mechanisms import Coins
from dpreg.schema import Numeric, Schema
from dpreg.sources import as_source
from dpreg.sources.reader import Reader
from dpreg.staged import rows as module
from dpreg.staged.location import LARGEST_RADIUS, LARGEST_REACH, Location
from dpreg.staged.rows import LocatedRows

ONE = 2**CELL_BITS


@dataclass(frozen=True)
class Stored:
    """Rows that are already stored: the chunk's columns are the cells of (1, x, y)."""

    size: int

    @property
    def types(self):
        return {f"z{j}": Numeric(-1, 1) for j in range(self.size)}

    def block(self, chunk):
        return np.column_stack([chunk[f"z{j}"] for j in range(self.size)])


def chunk(z):
    return {f"z{j}": column for j, column in enumerate(np.asarray(z, dtype=float).T)}


def located(location, z, columns=None):
    return LocatedRows(Stored(np.shape(z)[1]), location, columns).block(chunk(z))


def some_location(rng, p, size=None, radius=None, tau=None):
    whitening = rng.normal(size=(p, p)) * (10.0 ** rng.uniform(-3, 5) if size is None else size)
    return Location.on_grid(
        whitening=whitening,
        offset=-whitening @ rng.uniform(-1, 1, p),
        slopes=rng.normal(size=p),
        intercept=float(rng.normal()),
        tau=10.0 ** rng.uniform(-3, 0.5) if tau is None else tau,
        radius=10.0 ** rng.uniform(0, 3.2) if radius is None else radius,
    )


def some_rows(rng, n, p):
    z = np.clip(rng.standard_t(2, (n, p + 2)) * 0.4, -1, 1)
    z[:, 0] = 1.0
    z[rng.random(n) < 0.1] = 0.0
    return z


def squared_norms(out):
    whole = out * ONE
    assert (whole == np.rint(whole)).all()
    return [sum(int(k) ** 2 for k in row) for row in whole[:, :-1]]


def test_the_definition():
    rng = np.random.default_rng(0)
    location = some_location(rng, 4, size=1.0, radius=3.0, tau=0.8)
    z = some_rows(rng, 4000, 4)
    out = located(location, z)
    x, y = np.rint(z[:, 1:-1] * ONE) / ONE, np.rint(z[:, -1] * ONE) / ONE
    u = x @ location.whitening.T + location.offset
    e = (y - location.intercept - x @ location.slopes) / location.tau
    c = np.minimum(1, location.radius / np.sqrt(1 + (u**2).sum(axis=1)))
    complete = z[:, 0] == 1
    wanted = np.column_stack([c / location.radius, c[:, None] * u / location.radius])
    np.testing.assert_allclose(out[complete, :-1], wanted[complete], atol=1.001 / ONE)
    np.testing.assert_allclose(out[complete, -1], np.clip(c * e, -1, 1)[complete], atol=0.501 / ONE)
    assert (np.abs(out[complete, :-1]) <= np.abs(wanted[complete]) + 1e-15).all()
    assert 0.1 < (c < 1).mean() < 0.9
    assert (out[complete & (c == 1), 0] == location.radius_units / ONE).all()
    assert not out[~complete].any()


def alone(location, z, seed):
    """Compute the same rows in many ways; the first is the reference."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(z))
    back = np.argsort(order)
    yield located(location, z)
    yield np.concatenate([located(location, z[i : i + 1]) for i in range(len(z))])
    cuts = np.sort(rng.integers(0, len(z), 5))
    yield np.concatenate([located(location, part) for part in np.split(z, cuts)])
    yield located(location, z[order])[back]
    yield located(location, np.concatenate([some_rows(rng, 9001, z.shape[1] - 2), z]))[9001:]
    yield located(location, np.tile(z, (40, 1)))[-len(z) :]


@pytest.mark.parametrize("seed", range(20))
def test_a_row_is_its_own_bit_for_bit(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.choice([1, 2, 5, 17, 40]))
    location, z = some_location(rng, p), some_rows(rng, 257, p)
    reference, *others = alone(location, z, seed)
    for other in others:
        assert other.tobytes() == reference.tobytes()
    assert max(squared_norms(reference)) <= ONE**2
    assert np.abs(reference).max() <= 1


def many_rows():
    rng = np.random.default_rng(9)
    return located(some_location(rng, 40, size=2.0, radius=3.0), some_rows(rng, 30_000, 40))


THREADS = """
import hashlib, sys
sys.path.insert(0, "tests")
from staged.test_rows import many_rows
print(hashlib.sha256(many_rows().tobytes()).hexdigest())
"""


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_same_for_every_number_of_threads(threads):
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    run = subprocess.run(
        [sys.executable, "-c", THREADS], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == hashlib.sha256(many_rows().tobytes()).hexdigest()


def test_mutant_a_whitening_that_is_not_on_a_grid(monkeypatch):
    """So the test above can fail: a float map makes rows change with their chunk."""
    real = module._matrix

    def rough(*args):
        return real(*args) * (1 + np.random.default_rng(0).random() * 1e-3)

    monkeypatch.setattr(module, "_matrix", rough)
    rng = np.random.default_rng(1)
    location, z = some_location(rng, 17, size=1.0, radius=3.0), some_rows(rng, 257, 17)
    different = 0
    forms = rough(location, tuple(range(1, 18)), 19)
    cells = to_grid(z).T
    for row in range(len(z)):
        together = (forms @ cells)[:, row]
        different += (together != (forms @ cells[:, row : row + 1])[:, 0]).any()
    assert different > 50
    exact = real(location, tuple(range(1, 18)), 19)
    for row in range(len(z)):
        together = (exact @ cells)[:, row]
        assert (together == (exact @ cells[:, row : row + 1])[:, 0]).all()


def corners(location, p):
    """Rows that reach farthest, at and beside the surface where the norm binds."""
    rng = np.random.default_rng(p)
    signs = np.array(list(itertools.islice(itertools.product((-1.0, 1.0), repeat=p), 64)))
    far = np.sign(location.whitening)
    inner = (rng.random((3000, p)) * 2 - 1) * rng.choice([1e-3, 1e-2, 0.1, 1], (3000, 1))
    x = np.concatenate([signs, far, -far, inner])
    u = x @ location.whitening.T + location.offset
    size = np.sqrt(1 + (u**2).sum(axis=1))
    shrunk = x * (location.radius / size)[:, None]
    x = np.concatenate([x, shrunk, np.nextafter(shrunk, 0), shrunk + 1 / ONE, shrunk - 1 / ONE])
    y = rng.choice([-1.0, 1.0, 0.3], len(x))
    return np.column_stack([np.ones(len(x)), np.clip(x, -1, 1), y])


WILD = [
    {"size": 1.0, "radius": 1.0},
    {"size": 1e-9, "radius": 1.0},
    {"size": 1e15, "radius": LARGEST_RADIUS},
    {"size": 300.0, "radius": LARGEST_RADIUS, "tau": 1e-9},
    {"size": LARGEST_REACH, "radius": 2**0.5},
    {"size": 3.0, "radius": 4.0},
    {"size": 1.0, "radius": 2.0},
]


@pytest.mark.parametrize("case", range(len(WILD)))
@pytest.mark.parametrize("p", [1, 2, 3, 8])
def test_the_norm_holds_in_integers_at_the_corners(case, p):
    location = some_location(np.random.default_rng(case), p, **WILD[case])
    out = located(location, corners(location, p))
    norms = squared_norms(out)
    assert max(norms) <= ONE**2
    assert (np.abs(out) <= 1).all()
    assert (out[:, 0] * ONE <= location.radius_units).all(), "no weight is above one"


def on_the_sphere():
    """Return a location and rows for which |(1, u)| = R exactly, many of them."""
    p = 2
    location = Location.on_grid(
        offset=np.zeros(p),
        whitening=np.eye(p) * 8,
        slopes=np.zeros(p),
        intercept=0,
        tau=1,
        radius=4,
    )
    angle = np.linspace(0, 2 * np.pi, 4001)
    x = np.column_stack([np.cos(angle), np.sin(angle)]) * np.sqrt(15) / 8
    return location, np.column_stack([np.ones(len(x)), x, np.zeros(len(x))])


def _away_from_zero(values, out):
    return np.copyto(out, np.sign(values) * np.ceil(np.abs(values)))


def test_mutant_the_norm_is_not_checked(monkeypatch):
    """Rounding away from zero is mended by the check, and breaks the bound without it."""
    location, z = on_the_sphere()
    monkeypatch.setattr(module.np, "trunc", _away_from_zero)
    assert max(squared_norms(located(location, z))) <= ONE**2
    monkeypatch.setattr(module, "hold_norm", lambda whole: None)
    assert max(squared_norms(located(location, z))) > ONE**2


def test_mutant_weights_are_not_bounded(monkeypatch):
    location, z = on_the_sphere()
    z = z * [1, 0.5, 0.5, 1]
    assert (located(location, z)[:, 0] * ONE == location.radius_units).all()
    monkeypatch.setattr(module.np, "minimum", lambda a, b, out: a)
    assert (located(location, z)[:, 0] * ONE > location.radius_units).any()


def test_the_check_lowers_the_largest_integer_by_one():
    whole = np.array([[ONE, 3.0, -ONE], [1.0, 4.0, 2.0], [0.0, 0.0, 0.0]])
    module.hold_norm(whole)
    assert whole.tolist() == [[ONE - 1, 3.0, -(ONE - 1)], [1.0, 4.0, 2.0], [0.0, 0.0, 0.0]]
    heavy = np.full((4, 1), ONE * 0.75)
    module.hold_norm(heavy)
    assert 0 <= ONE**2 - (heavy**2).sum() < 2 * ONE
    assert np.ptp(heavy) <= 1


def test_bad_cells_neither_raise_nor_leak():
    location = some_location(np.random.default_rng(0), 2, size=1.0, radius=2.0)
    z = np.array([[1, np.nan, np.inf, -np.inf], [1, 0, 1, 0.25], [0, 0, 0, 0], [1, 9, -9, 1e308]])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        out = located(location, z)
    bounded = [[1, 0, 1, -1], [1, 0, 1, 0.25], [0, 0, 0, 0], [1, 1, -1, 1]]
    assert out.tobytes() == located(location, np.array(bounded)).tobytes()
    assert out[2].tobytes() == np.zeros(4).tobytes()


@pytest.mark.parametrize("seed", range(0, 300, 9))
def test_one_row_changes_no_other(seed):
    """The design's hostile tables, written in located coordinates."""
    rng = np.random.default_rng(seed)
    keep = [(), ("Intercept",)][seed // 7 % 2]
    design = build_design(leaks.FORMULAS[seed % len(leaks.FORMULAS)], leaks.SCHEMA, keep=keep)
    rows = LocatedRows(design, some_location(rng, design.size - 2))
    public = repr(rows), pickle.dumps(rows)
    styles = leaks.styled(rng, leaks.STYLES)
    count = int(rng.choice([1, 2, 3, 9, 40]))
    cells = {name: leaks.drawn(rng, name, style, count) for name, style in styles.items()}

    def outcome(size=8192):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            chunks = as_source(table).chunks(rows.types, size)
            return np.concatenate([rows.block(one) for one in chunks])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = leaks.table(styles, cells)
    before = outcome()
    changed = int(rng.integers(count))
    for name, style in styles.items():
        cells[name][changed] = leaks.drawn(rng, name, style, 1)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = leaks.table(styles, cells)
    after = outcome()
    assert np.delete(before, changed, 0).tobytes() == np.delete(after, changed, 0).tobytes()
    assert max(squared_norms(after)) <= ONE**2
    for size in (1, 2, 7):
        assert outcome(size).tobytes() == after.tobytes()
    assert (repr(rows), pickle.dumps(rows)) == public


def test_some_of_the_columns():
    rng = np.random.default_rng(2)
    location, z = some_location(rng, 2, size=1.0, radius=3.0), some_rows(rng, 100, 5)
    narrow = located(location, z[:, [0, 4, 2, 6]])
    assert located(location, z, columns=(4, 2)).tobytes() == narrow.tobytes()
    assert LocatedRows(Stored(7), location, (4, 2)).size == 4


@pytest.mark.parametrize(
    ("columns", "message"),
    [((1, 1), "different"), ((0, 1), "from 1 to 5"), ((1, 6), "from 1 to 5"), ((1,), "2 columns")],
)
def test_columns_that_do_not_fit_are_refused(columns, message):
    location = some_location(np.random.default_rng(0), 2)
    with pytest.raises(ArgumentError, match=message):
        LocatedRows(Stored(7), location, columns)


def test_moments_of_all_rows_and_of_two_halves():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(20_000, 3)), columns=["y", "x", "z"])
    frame.loc[::7, "x"] = np.nan
    design = build_design("y ~ x + z", Schema({"y": (-3, 3), "x": (-3, 3), "z": (-3, 3)}))
    rows = LocatedRows(design, some_location(rng, 2, size=3.0, radius=2.0, tau=0.5))
    reader = Reader(as_source(frame), False)
    (whole,) = read_moments(reader, rows)
    blocks = [rows.block(one) for one in reader.source.chunks(rows.types, 999)]
    cells = np.rint(np.concatenate(blocks) * ONE).astype(np.int64)
    wanted = [[int(sum(int(v) for v in a * b)) for b in cells.T] for a in cells.T]
    assert [list(row) for row in whole.cells] == wanted
    first, second = read_moments(reader, rows, Coins(2))
    assert first + second == whole
    assert 9_000 < first.rows < 11_000


def test_located_rows_are_sent_to_workers_as_public_facts():
    design = build_design("y ~ x", Schema({"y": (0, 1), "x": (0, 1)}))
    rows = LocatedRows(design, some_location(np.random.default_rng(0), 1))
    again = pickle.loads(pickle.dumps(rows))
    assert again == rows
    assert (again._forms == rows._forms).all()
    assert repr(rows).startswith("<LocatedRows: 1 columns, R=")


def outer_rows(location, z, wide):
    rows = LocatedRows(Stored(np.shape(z)[1]), location, wide=wide, outer=True)
    return rows, rows.block(chunk(z))


@pytest.mark.parametrize("seed", range(8))
def test_the_four_places_are_what_the_formulas_say(seed):
    rng = np.random.default_rng(seed)
    z = some_rows(rng, 500, 3)
    location = some_location(rng, 3, size=2.0, radius=2.5, tau=0.4)
    _, out = outer_rows(location, z, 0.9)
    cells = to_grid(z.copy()) / ONE
    complete = cells[:, 0] > 0
    u = cells[:, 1:4] @ location.whitening.T + location.offset
    e = cells[:, 4] - location.intercept - cells[:, 1:4] @ location.slopes
    c = np.minimum(1, location.radius / np.sqrt(1 + (u**2).sum(axis=1)))
    f = np.clip(e / 0.9, -1, 1)
    places = [
        np.maximum(c * f, 0),
        np.maximum(-c * f, 0),
        np.sqrt(1 - c * c) * np.abs(f),
        np.sqrt(1 - np.minimum(1.5 * c, 1) ** 2),
    ]
    for place, wanted in enumerate(places, -4):
        np.testing.assert_allclose(out[:, place], wanted * complete, atol=1e-5)
        assert 0.02 < (out[:, place] > 0).mean() < 1
    plain = located(location, z)
    assert out[:, :-4].tobytes() == plain.tobytes()


def hold_the_four_places(out):
    """They are whole, at most 2**20 each, and three of them have a norm of at most that."""
    whole = out[:, -4:] * ONE
    assert (whole == np.rint(whole)).all()
    assert ((whole >= 0) & (whole <= ONE)).all()
    assert not (whole[:, 0] * whole[:, 1]).any()
    assert max(squared_norms(out[:, -4:])) <= ONE**2


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_the_four_places_are_the_rows_own_and_hold_their_bound(seed):
    rng = np.random.default_rng(seed)
    p, n = int(rng.integers(1, 6)), 60
    z, location = some_rows(rng, n, p), some_location(rng, p)
    z[rng.random(n) < 0.2, 1:] = rng.choice([-1, 1, 0, 2.0**-20, np.nan], p + 1)
    wide = min(location.tau * 10 ** rng.uniform(0, 2), 1e6)
    rows, out = outer_rows(location, z, wide)
    hold_the_four_places(out)
    assert max(squared_norms(out[:, : p + 2])) <= ONE**2
    for j in range(0, n, 7):
        assert rows.block(chunk(z[j : j + 1])).tobytes() == out[j : j + 1].tobytes()
    shuffled = rng.permutation(n)
    assert rows.block(chunk(z[shuffled])).tobytes() == out[shuffled].tobytes()
    assert pickle.loads(pickle.dumps(rows)) == rows


@pytest.mark.parametrize("mutant", ["no cut", "no share"])
def test_places_that_forget_their_bound_are_caught(monkeypatch, mutant):
    """The same search, with a residual that is not cut, or what shortening leaves counted twice."""
    honest = module._spread

    def whole_residual(weight, out):
        residual = np.abs(out[0])
        honest(weight, out)
        out[2] = residual * (weight < 1)

    if mutant == "no cut":
        monkeypatch.setattr(
            module, "_cut", lambda residual, units, out, _=1: np.rint(residual * units, out=out)
        )
        monkeypatch.setattr(module, "hold_norm", lambda _: None)
    else:
        monkeypatch.setattr(module, "_spread", whole_residual)
    rng = np.random.default_rng(0)
    location = some_location(rng, 2, size=2.0, radius=1.5, tau=0.2)
    _, out = outer_rows(location, some_rows(rng, 400, 2), 0.2)
    with pytest.raises(AssertionError):
        hold_the_four_places(out)


def test_rows_on_the_grid_are_what_the_grid_makes_of_them():
    rng = np.random.default_rng(6)
    location, z = some_location(rng, 5, size=2.0, radius=3.0), some_rows(rng, 3000, 5)
    for given in ({}, {"wide": 20.0}, {"wide": 20.0, "outer": True}, {"stretch": 1.5}):
        rows = LocatedRows(Stored(7), location, **given)
        cells = rows.cells(chunk(z))
        assert np.abs(cells).max() <= ONE
        np.testing.assert_array_equal(cells, to_grid(rows.block(chunk(z))))


@pytest.mark.parametrize("formula", leaks.FORMULAS[:6])
def test_the_short_way_to_the_columns_makes_the_same_located_rows(formula, monkeypatch):
    design = build_design(formula, leaks.SCHEMA)
    assert not design.layout.groups
    rng = np.random.default_rng(7)
    location = some_location(rng, design.size - 2)
    styles = leaks.styled(rng, leaks.STYLES)
    cells = {name: leaks.drawn(rng, name, style, 500) for name, style in styles.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = as_source(leaks.table(styles, cells))
    (one,) = table.chunks(design.types, 500)
    short = LocatedRows(design, location).block(one)
    monkeypatch.setattr(module, "whole_rows", lambda design: design.block)
    assert short.tobytes() == LocatedRows(design, location).block(one).tobytes()


@pytest.mark.parametrize("count", [1, 63, 64, 65, 8192])
@pytest.mark.parametrize("size", [2, 17, 400])
def test_a_product_is_taken_in_parts_that_one_thread_computes(size, count, monkeypatch):
    rng = np.random.default_rng(size)
    forms = rng.integers(-9, 9, (size, size + 1)).astype(float)
    cells = rng.integers(-9, 9, (size + 1, count)).astype(float)
    wanted, out, sizes = forms @ cells, np.empty((size, count)), []
    product = np.matmul

    def counted(a, b, out):
        sizes.append(a.size * b.shape[1])
        return product(a, b, out=out)

    monkeypatch.setattr(module.np, "matmul", counted)
    module.applied(forms, cells, out)
    assert (out == wanted).all()
    assert max(sizes) <= max(2**18, 64 * forms.size)
