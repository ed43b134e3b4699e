"""Which of R's rows are kept where a column says whose they are."""

import numpy as np
import pandas as pd
import pytest

from dpreg.api import labelled_rows as module
from dpreg.api.labelled_rows import labelled_rows
from dpreg.errors import DataError
from dpreg.sources.persons import Persons

KEY = bytes(range(32))
LEVELS = {"g": ["u", "v"]}


def people(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    who = np.minimum(rng.geometric(0.05, rows), 60).astype(float)
    who[rng.random(rows) < 0.05] = np.nan
    return pd.DataFrame({"who": who, "g": rng.choice(["u", "v", "w"], rows)})


def read(frame, most=2, by=None, key=KEY):
    table = labelled_rows(frame, by, LEVELS if by else None, Persons("who", most, key))
    count = table.read()
    return table, count


def kept_by_person(frame, **options):
    """Each person's kept rows, as places among that person's own."""
    table, count = read(frame, **options)
    kept = table.labels() >= 0
    assert kept.sum() == count
    return {
        name: (tuple(kept[places]), *set(table.coins()[places]))
        for name, places in frame.groupby("who").indices.items()
    }


@pytest.mark.parametrize("most", [1, 2, 5])
def test_at_most_k_rows_of_each_person_and_all_where_there_are_no_more(most):
    frame = people()
    owned = frame["who"].value_counts()
    for name, (kept, *coins) in kept_by_person(frame, most=most).items():
        assert sum(kept) == min(most, owned[name])
        assert len(coins) == 1


def others_change(frame, rng):
    """A table that differs in the rows of one person, who may own any number, in any places."""
    who = rng.choice(frame["who"].dropna().unique())
    rest = frame[frame["who"] != who]
    own = pd.DataFrame({"who": [who] * int(rng.integers(0, 9)), "g": "u"})
    both = pd.concat([own, rest])
    place = np.concatenate([rng.choice(len(both), len(own), replace=False), np.zeros(0)])
    order = np.full(len(both), -1)
    order[place.astype(int)] = np.arange(len(own))
    order[order < 0] = np.arange(len(own), len(both))
    return who, both.iloc[order].reset_index(drop=True)


def changes_of_others(rounds=60):
    rng, frame = np.random.default_rng(1), people()
    before = kept_by_person(frame)
    for _ in range(rounds):
        who, changed = others_change(frame, rng)
        after = kept_by_person(changed)
        if any(after.get(name) != kept for name, kept in before.items() if name != who):
            return True
    return False


def test_one_persons_rows_have_no_say_in_anybody_elses():
    assert not changes_of_others()


def test_the_search_sees_a_priority_that_goes_by_place_in_the_table(monkeypatch):
    """The mutant: rows are numbered through the whole table, and not within their person."""
    real = module.keep

    def by_place(told, most, key):
        placed = told.copy()
        placed[:, -1] = np.arange(len(told))
        chosen = real(placed, most, key)
        return told[chosen[:, -1].astype(int)]

    monkeypatch.setattr(module, "keep", by_place)
    assert changes_of_others()


def test_the_key_decides_and_each_row_has_the_same_chance():
    frame = pd.DataFrame({"who": ["a"] * 5 + ["b"] * 2})
    counts = np.zeros(7)
    for number in range(2_000):
        table, _ = read(frame, key=number.to_bytes(32))
        counts += table.labels() >= 0
    assert (counts[5:] == 2_000).all()
    assert abs(counts[:5] - 800).max() < 5 * np.sqrt(2_000 * 0.4 * 0.6)


def test_groups_and_missing_ids():
    frame = people()
    table, count = read(frame, most=400, by="g")
    named = frame["who"].notna().to_numpy()
    assert count == named.sum()
    expected = frame["g"].map({"u": 0, "v": 1}).fillna(-1).where(named, -1)
    assert (table.labels() == expected).all()


def test_no_rows_and_nobody_named():
    empty, count = read(people()[:0])
    assert (count, len(empty.labels()), len(empty.coins())) == (0, 0, 0)
    nobody, count = read(pd.DataFrame({"who": [np.nan, np.nan]}))
    assert (count, *nobody.labels()) == (0, -1, -1)


def test_ids_that_are_dates_or_declared_are_refused():
    dates = pd.DataFrame({"who": pd.to_datetime(["2020-01-01"])})
    with pytest.raises(DataError, match="holds neither numbers nor text"):
        read(dates)
    with pytest.raises(DataError, match="this call also uses"):
        labelled_rows(people(), "who", {"who": ["a", "b"]}, Persons("who", 1, KEY))
