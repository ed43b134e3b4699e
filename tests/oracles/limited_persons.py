"""What passes over whole persons are compared with: a tally that limits sums, and a slow one.

The tally puts each person into the slot that the person's coin chooses, as one person and as sums
that were limited after they were made. A person whose rows come apart counts twice, and is limited
twice; a slot without that person is the same in tables that differ in that person's rows.
"""

import hashlib
from collections import defaultdict

import numpy as np

from dpreg.cells import spelling
from dpreg.columns import Categorical, Numeric, Unbounded
from dpreg.sources.persons import COIN, PERSON, first_rows, person_sums

COLUMNS = {"x": Unbounded(), "level": Categorical(["a", "b"]), "z": Numeric(0, 9)}
SLOTS = 1 << 12
LIMIT = 5000


class LimitedPersons:
    """Each person's sums of integers of the cells, moved towards zero where they are too long."""

    def __init__(self, columns=tuple(COLUMNS)):
        self.columns = columns

    def __call__(self, chunks):
        found = np.zeros((SLOTS, 2 + len(self.columns)), dtype=np.int64)
        for _, chunk in chunks:
            codes = chunk[PERSON]
            assert codes.dtype == np.int64
            assert codes[0] == 0
            assert set(np.diff(codes)) <= {0, 1}
            cells = np.column_stack([integers(chunk[name]) for name in self.columns])
            sums = person_sums(codes, cells)
            norms = person_sums(codes, abs(cells).sum(axis=1))
            sums = np.where((norms > LIMIT)[:, None], sums * LIMIT // norms[:, None], sums)
            firsts = first_rows(codes)
            coins = chunk[COIN]
            assert (coins == coins[firsts][codes]).all()
            slots = (coins[firsts] * SLOTS).astype(int)
            owned = person_sums(codes, np.ones(len(codes), dtype=np.int64))
            np.add.at(found, slots, np.column_stack([np.ones_like(owned), owned, sums]))
        return found.ravel()


def integers(cells):
    """Return three digits of each cell; 7 where it is missing."""
    cells = np.asarray(cells, dtype=float)
    return np.rint(np.where(np.isfinite(cells), cells, 0.007) * 1000).astype(np.int64)


def slowly(frame, key, columns=tuple(COLUMNS)):
    """Do the same from a frame's cells, person by person."""
    persons = defaultdict(list)
    for row in frame.to_dict("records"):
        name = spelling(row["who"])
        if name is not None:
            persons[name].append([_integer(row[column], COLUMNS[column]) for column in columns])
    found = np.zeros((SLOTS, 2 + len(columns)), dtype=np.int64)
    for name, rows in persons.items():
        norm = sum(abs(cell) for row in rows for cell in row)
        sums = [sum(cells) for cells in zip(*rows, strict=True)]
        if norm > LIMIT:
            sums = [total * LIMIT // norm for total in sums]
        found[slot(name, key)] += [1, len(rows), *sums]
    return found.ravel()


def slot(name, key):
    """Return where a person's sums are."""
    told = hashlib.blake2b(name.encode(), digest_size=16, key=key, person=b"dpreg id").digest()
    coin = (int.from_bytes(told[8:], "little") >> 11) / 2**53
    return int(coin * SLOTS)


def _integer(cell, how):
    if isinstance(how, Categorical):
        return how.levels.index(cell) * 1000 if cell in how.levels else -1000
    return 7 if cell is None or cell != cell else round(float(cell) * 1000)
