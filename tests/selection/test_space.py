"""Spaces list, in order, and count, without listing, exactly the models on offer."""

from dataclasses import dataclass
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from oracles.scores import penalty_counts

from dpreg.errors import ArgumentError
from dpreg.selection.space import Space, build_space


@dataclass(frozen=True)
class Term:
    name: str
    columns: tuple[int, ...]
    factors: tuple[str, ...]


def terms_of(*names, widths=None):
    """Make terms, and column names, from names like "a:b", one column each or `widths[name]`."""
    terms, columns = [], []
    for name in names:
        width = (widths or {}).get(name, 1)
        at = tuple(range(len(columns), len(columns) + width))
        columns += [name] if width == 1 else [f"{name}[{i}]" for i in range(width)]
        terms.append(Term(name, at, () if name == "Intercept" else tuple(name.split(":"))))
    return terms, columns


def plain(q, **limits):
    return Space(
        units=tuple(f"x{i}" for i in range(q)),
        unit_columns=tuple((i + 1,) for i in range(q)),
        keep_columns=(0,),
        **limits,
    )


def by_brute_force(space):
    """All models as tuples of bits, in binary counting order, straight from the definition."""
    q = len(space.units)
    top = q if space.max_units is None else space.max_units
    for bits in product((0, 1), repeat=q):
        model = bits[::-1]  # unit 0 is the lowest bit
        inside = {i for i in range(q) if model[i]}
        needs = space.requires or ((),) * q
        if len(inside) <= top and all(inside >= set(needs[i]) for i in inside):
            yield model


def check(space):
    models = space.models()
    assert [tuple(map(int, row)) for row in models] == list(by_brute_force(space))
    assert models.dtype == np.bool_
    assert models.shape == (space.size, len(space.units))


@pytest.mark.parametrize("q", range(6))
@pytest.mark.parametrize("limits", [{}, {"max_units": 2}, {"max_units": 9}])
def test_lists_subsets_within_the_limits(q, limits):
    check(plain(q, **limits))


@pytest.mark.parametrize("seed", range(40))
def test_lists_and_counts_under_any_hierarchy(seed):
    rng = np.random.default_rng(seed)
    q = int(rng.integers(1, 10))
    needs = [set() for _ in range(q)]
    order = rng.permutation(q)
    for place, unit in enumerate(order):
        for other in order[:place]:
            if rng.random() < 0.25:
                needs[unit] |= {int(other)} | needs[other]
    limits = {"max_units": int(rng.integers(q + 1))} if seed % 2 else {}
    check(plain(q, requires=tuple(tuple(sorted(n)) for n in needs), **limits))


def test_counts_large_spaces_without_listing():
    assert plain(300).size == 2**300
    assert plain(300, max_units=5).size == sum(comb(300, s) for s in range(6))
    mains = tuple(() for _ in range(9))
    pairs = tuple(combinations(range(9), 2))
    crossed = plain(45, requires=mains + pairs)
    assert crossed.size == sum(comb(9, s) * 2 ** comb(s, 2) for s in range(10))
    chained = plain(200, requires=tuple((i - 1,) if i % 2 else () for i in range(200)))
    assert chained.size == 3**100


def test_lists_small_parts_of_large_spaces():
    models = plain(100, max_units=2).models()
    assert models.shape == (1 + 100 + comb(100, 2), 100)
    assert models.sum(axis=1).max() == 2
    values = [sum(1 << int(i) for i in np.flatnonzero(row)) for row in models]
    assert values == sorted(set(values))


def test_columns_and_penalty_counts():
    space = Space(("a", "b"), ((1, 2), (4,)), (0, 3))
    models = space.models()
    np.testing.assert_array_equal(
        space.columns(models),
        np.array([[1, 0, 0, 1, 0], [1, 1, 1, 1, 0], [1, 0, 0, 1, 1], [1, 1, 1, 1, 1]], dtype=bool),
    )
    columns, units = penalty_counts(space, models)
    assert columns.tolist() == [0, 2, 1, 3]
    assert units.tolist() == [0, 1, 1, 2]


def test_nothing_to_choose_is_one_model():
    space = build_space(*terms_of("Intercept"))
    assert space.size == 1
    assert space.columns(space.models()).tolist() == [[True]]


def test_builds_by_term():
    terms, columns = terms_of("Intercept", "a", "county", "b", widths={"county": 3})
    space = build_space(terms, columns, keep=("Intercept", "b"), max_terms=1)
    assert space.units == ("a", "county")
    assert space.unit_columns == ((1,), (2, 3, 4))
    assert space.keep_columns == (0, 5)
    assert space.size == 3
    assert space.requires == ()


def test_builds_by_column():
    terms, columns = terms_of("Intercept", "a", "county", widths={"county": 3})
    space = build_space(terms, columns, units="column")
    assert space.units == ("a", "county[0]", "county[1]", "county[2]")
    assert space.unit_columns == ((1,), (2,), (3,), (4,))
    assert space.size == 16


def test_without_an_intercept_or_with_a_free_one():
    terms, columns = [Term("a", (1,), ("a",))], ["Intercept", "a"]
    space = build_space(terms, columns, keep=("Intercept",))
    assert space.columns(space.models()).tolist() == [[False, False], [False, True]]
    free = build_space(*terms_of("Intercept", "a"), keep=())
    assert free.units == ("Intercept", "a")


def test_strong_hierarchy():
    terms, columns = terms_of("Intercept", "a", "b", "c", "a:b", "b:c", "a:c", "a:b:c")
    space = build_space(terms, columns, hierarchy="strong")
    named = {
        u: {space.units[i] for i in n} for u, n in zip(space.units, space.requires, strict=True)
    }
    assert named["a:b"] == {"a", "b"}
    assert named["a:b:c"] == {"a", "b", "c", "a:b", "b:c", "a:c"}
    assert named["a"] == set()
    check(space)
    assert space.size == 1 + 3 + 3 * 2 + 2**3 + 1


def test_strong_hierarchy_asks_nothing_of_kept_terms():
    terms, columns = terms_of("Intercept", "a", "b", "a:b")
    space = build_space(terms, columns, keep=("Intercept", "a", "b"), hierarchy="strong")
    assert space.units == ("a:b",)
    assert space.requires == ()
    kept = build_space(terms, columns, keep=("Intercept", "a:b"), hierarchy="strong")
    assert kept.size == 4


def test_strong_hierarchy_by_column_goes_by_the_columns_names():
    terms = [
        Term("Intercept", (0,), ()),
        Term("a", (1, 2), ("a",)),
        Term("b", (3,), ("b",)),
        Term("a:b", (4, 5), ("a", "b")),
    ]
    names = ["Intercept", "a[T.x]", "a[T.y]", "b", "a[T.x]:b", "a[T.y]:b"]
    space = build_space(terms, names, units="column", hierarchy="strong")
    assert space.requires == ((), (), (), (0, 2), (1, 2))
    check(space)
    other = [*names[:4], "a[x]:b", "a[y]:b"]  # coded by other contrasts: made of all of a
    space = build_space(terms, other, units="column", hierarchy="strong")
    assert space.requires == ((), (), (), (0, 1, 2), (0, 1, 2))


def test_an_interaction_without_its_main_effects_is_refused():
    terms, columns = terms_of("Intercept", "a", "a:b")
    with pytest.raises(ArgumentError, match="lacks b: add them"):
        build_space(terms, columns, hierarchy="strong")
