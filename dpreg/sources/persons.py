r"""Which rows of a person are kept, all or at most k, and why the rest of dpreg may count on it.

With ``person="person_id"`` a table is a set of persons, each with all rows that spell one id
(`dpreg.cells.spelling`); a row without an id is excluded. Of each person at most k =
`contributions` rows are **kept**, or all of them where a call limits what is summed over a person
and not the rows (*All rows of a person*). All that a call computes is a function of the kept rows,
and of a coin u for each person, uniform in [0, 1), which says what half or block all kept rows of
that person go to: the group floor(u G) of G.

Which rows are kept
-------------------
A secret key is drawn for each call. A row's *cells* are those of the columns that the call uses, as
read. Of m rows of a person with equal cells the first has the number 1, the last m; equal rows are
interchangeable, so it does not matter which has which. A row's *priority* is a keyed hash of (id,
cells, number), and the k rows of least priority are kept; where two priorities agree, the cells
decide. So each k rows of a person are kept with the same probability, whatever their cells, their
order, or the number of copies. They are chosen once, before anything else is done with the rows:
all passes and looks of the call see the same ones.

Neighbours
----------
add-remove
    One person is added or removed, with all rows, however many.
replace-one
    One person is replaced by another who is not in the table, or who has the same id; each with any
    number of rows. The number of *persons* is public then. The number of **rows is private**, for
    the two may own different numbers, and so is the number of kept rows. So with `person` a call
    does what it would do under add-remove wherever it asks for the number of rows: it buys a noisy
    one, or does without; results hold no `nobs`.

All rows of a person
--------------------
A pass reads kept rows in chunks that hold **whole persons**: all kept rows of a person are in one
chunk, one after the other, and the chunk's column `PERSON` numbers its persons from 0 in the order
in which they come. So what a tally makes of a chunk can be the sum over its persons of a function g
of a person's rows as a multiset, limited after they were summed (`person_sums`), and the
pass is then sum g over all persons, whatever the engine, the chunks and the order of rows. Where g
lies in a set of diameter D (add-remove: of radius R around 0) neighbours' passes differ by at most
D (R), for **any number of rows a person**: their rows differ in one person's alone, so all other
terms are the same integers. The number of ids among the rows is `Reader.person_count`: rows count
for it whatever their other cells hold, so that under replace-one it is the public number of
persons, if each has a row with an id.

Statement
---------
Let M be a function of a table that is DP when up to k rows appear or vanish (add-remove), or when
up to k rows are replaced, any of which may be rows that are excluded (replace-one). Then M of
the kept rows is as private for the two relations above. If M sends each row to a group by a coin of
its own, and composes what it makes of disjoint groups (`dpreg.privacy.budget.in_parallel`), it may
use the person's coin in its place. One person's rows lie in one group.

Proof
-----
Fix the key of the priorities. A person's kept rows are a function of that person's rows alone: of
their ids and cells, as a multiset. Hence neighbours keep the same rows of all common persons. Under
add-remove the kept rows of one person, at most k, appear or vanish. Under replace-one i <= k kept
rows vanish and j <= k appear. Pad both to k by rows that are excluded, which change no sum, no
count and no score: then k rows are replaced. What M knows of the number of rows must not tell the
padding: it is not told the number at all.

Coins: u is a keyed hash of the id. Take the hash for a random function of the id, independent of
all else. Under add-remove neighbours agree on the coins of all common persons. Under replace-one by
a person with the same id, too. By one with another id, b in place of a: exchange the values of the
function at a and b. That keeps its law, nobody else's coin depends on either, and now the second
table's b has the coin that a had in the first. So for each function the pair of tables falls into
groups as above, in one group: k rows are replaced there, and none elsewhere. Averaging over the
functions keeps (eps, delta).

*What is not exact.* Hashes are BLAKE2b with a key of 256 bits from the operating system's entropy.
The choice of rows is right for every key. The coins rest on BLAKE2b being a pseudorandom function,
as encryption would; and on two of n persons not having one hash of 128 bits, which has probability
below n^2 2**-129. A group's probability differs from 1/G by at most 2**-53, which no claim uses.
A seeded run, **not private**, takes its key from the seed.

Sums over a person
------------------
What a person counts for is limited after that person's rows were summed, so the sum has to be a
function of these rows as a multiset: not of their order, not of other persons, not of what shares
the chunk.

Let M = 2**63 - 1 and let c_1, ..., c_m be one person's cells, any int64 and any number of them.
`person_sums` returns min(M, max(-M, c_1 + ... + c_m)), the exact sum moved into [-M, M]. Hence
(a) it is the same in any order of rows and in any chunk; (b) it depends on no other person's rows;
(c) it never wraps: its sign is that of the exact sum, and its modulus is M or exact; (d) where
|c_r| <= w_r in each row, its modulus is at most the `person_sums` of w: a limit that is checked on
the sum of the rows' norms holds for the sum of the cells too, saturated or not.

*Proof.* Let t be the largest modulus of the chunk's cells and L the most rows of one of its
persons. Where t L <= M, no partial sum of a person's cells, in any order or grouping, leaves [-M,
M]: int64 adds them exactly. Else Python's integers add them, exactly whatever their size, and what
lies beyond is moved to M or -M. Both ways return the same number, so (b) holds although t and L are
the chunk's. (d): the exact sums satisfy it and x -> min(M, max(-M, x)) is odd and monotone. QED
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Floats, Ints, Places
from dpreg.cells import spelling
from dpreg.columns import Categorical, Columns, ColumnType, PersonId
from dpreg.errors import ArgumentError, DataError
from dpreg.privacy.mechanisms.coins import secret_key
from dpreg.privacy.protection import Protection

COIN: Final = "\0coin"
"""The column of a chunk that holds each row's person's coin."""

PERSON: Final = "\0person"
"""The column of a chunk that numbers its persons: int64, from 0, each person's rows together."""

ID: Final = np.dtype([("high", "<u8"), ("low", "<u8")])
"""A keyed hash of an id; zero where it is missing."""

MOST: Final = 2**63 - 1
"""Where sums saturate, on both sides of zero."""

_COIN_BITS: Final = 53
_WORDS: Final = 2


@dataclass(frozen=True, slots=True)
class Persons:
    """Whose rows a call's rows are, and how many of each it uses.

    Attributes
    ----------
    column : str
        Of ids.
    rows : int or None
        k, the most rows of one person that are kept; None keeps all.
    key : bytes
        Secret: `dpreg.privacy.mechanisms.coins.secret_key`.
    """

    column: str
    rows: int | None
    key: bytes = field(repr=False)

    @classmethod
    def of(cls, protection: Protection, unsafe_seed: int | None = None) -> Persons | None:
        """Draw a key for a call; None where it protects the owners of rows that nobody names."""
        if protection.person is None:
            return None
        return cls(protection.person, protection.contributions, secret_key(unsafe_seed))

    def read_with(self, columns: Columns) -> dict[str, ColumnType]:
        """Return what is to be read of the table: a call's columns and the ids.

        Raises
        ------
        DataError
            If the ids are one of the call's columns themselves.
        """
        if self.column in columns:
            raise DataError(
                f"person={self.column!r} is a column that this call also uses: an id is neither a "
                "number nor a label. Leave it out of formula, columns and schema, or name another"
            )
        return {**columns, self.column: PersonId(self.key)}


def digests(cells: Iterable[Any], key: bytes) -> NDArray[Any]:
    """Hash cells that name persons, shape (cells,) of `ID`."""
    found = b"".join(_digest(spelling(cell), key) for cell in cells)
    return np.frombuffer(found, dtype=ID)


def _digest(name: str | None, key: bytes) -> bytes:
    if name is None:
        return bytes(ID.itemsize)
    told = name.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(told, digest_size=ID.itemsize, key=key, person=b"dpreg id").digest()


def coins_of(low: NDArray[np.uint64]) -> Floats:
    """Return persons' coins in [0, 1), by the low halves of their hashes."""
    return (low >> np.uint64(64 - _COIN_BITS)).astype(np.float64) * 2.0**-_COIN_BITS


def matrix_of(chunk: Mapping[str, NDArray[Any]], names: Sequence[str], column: str) -> Floats:
    """Write the rows of a chunk that have an id as one array, shape (rows, 2 + names).

    The hash's two halves come first, as bits; then cells, where each meaning has one bit pattern.
    """
    ids = chunk[column]
    there = np.flatnonzero((ids["high"] != 0) | (ids["low"] != 0))
    rows = np.empty((len(there), _WORDS + len(names)))
    rows[:, 0] = ids["high"][there].view(np.float64)
    rows[:, 1] = ids["low"][there].view(np.float64)
    for place, name in enumerate(names, start=_WORDS):
        cells = chunk[name][there].astype(np.float64) + 0.0  # minus zero is zero
        rows[:, place] = np.where(np.isnan(cells), np.nan, cells)
    return rows


def keep(rows: Floats, most: int | None, key: bytes) -> Floats:
    """Keep at most `most` rows of each person, or all, as the module's docstring says.

    Parameters
    ----------
    rows : array, shape (n, 2 + columns)
        From `matrix_of`: all rows of the persons that are in it.
    most : int or None
    key : bytes

    Returns
    -------
    array, shape (kept, 2 + columns)
        Each person's rows next to each other, persons in the order of their hashes; of one person
        in an order that follows from the rows as a multiset, or in any where `most` is None.
    """
    words = np.ascontiguousarray(rows).view(np.uint64)
    if most is None:
        return words[np.lexsort((words[:, 1], words[:, 0]))].view(np.float64)
    words = words[np.lexsort(words.T[::-1])]
    person, owned, _ = _runs(words[:, :_WORDS])
    crowded = np.flatnonzero(owned > most)
    if not len(crowded):
        return words.view(np.float64)
    some, person = words[crowded], person[crowded]
    number = _runs(some)[2].astype(np.uint64)
    order = np.lexsort((_priorities(some, number, key), person))
    rank = _runs(person[:, None])[2]  # the places of persons are the same in `order`
    dropped = np.zeros(len(words), dtype=bool)
    dropped[crowded[order[rank >= most]]] = True
    return words[~dropped].view(np.float64)


def first_rows(*keys: NDArray[Any]) -> Places:
    """Return the places where runs of rows that agree in all keys begin."""
    new = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.concatenate([np.zeros(min(len(keys[0]), 1), dtype=np.intp), np.flatnonzero(new) + 1])


def _runs(rows: NDArray[Any]) -> tuple[Places, Places, Places]:
    """Return for each row its run of equal rows, how long that is, and the row's place in it."""
    starts = first_rows(*rows.T)
    lengths = np.diff(starts, append=len(rows))
    places = np.arange(len(rows)) - np.repeat(starts, lengths)
    return np.repeat(np.arange(len(starts)), lengths), np.repeat(lengths, lengths), places


def _priorities(
    words: NDArray[np.uint64], number: NDArray[np.uint64], key: bytes
) -> NDArray[np.uint64]:
    told = np.column_stack([words, number]).astype("<u8").tobytes()
    size = 8 * (words.shape[1] + 1)
    keyed = hashlib.blake2b(digest_size=8, key=key, person=b"dpreg row")
    found = []
    for start in range(0, len(told), size):
        one = keyed.copy()
        one.update(told[start : start + size])
        found.append(one.digest())
    return np.frombuffer(b"".join(found), dtype="<u8")


def persons_of(block: Floats) -> Places:
    """Return the places of persons' first rows in kept rows, columns first."""
    return first_rows(*block[:_WORDS].view(np.uint64))


def unpacked(block: Floats, columns: Columns, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return columns of kept rows as chunks have them, and their persons' coins and numbers.

    Parameters
    ----------
    block : array, shape (2 + columns, rows)
        From `keep`, columns first.
    columns : mapping of str to ColumnType
        All that are in it, in their order.
    names : collection of str
        Those to return.
    """
    starts = persons_of(block)
    lengths = np.diff(starts, append=block.shape[1])
    cells = zip(block[_WORDS:], columns.items(), strict=True)
    return {
        **{
            name: column.astype(np.int32) if isinstance(how, Categorical) else column
            for column, (name, how) in cells
            if name in names
        },
        COIN: coins_of(block[1].view(np.uint64)),
        PERSON: np.repeat(np.arange(len(starts), dtype=np.int64), lengths),
    }


def person_sums(codes: Ints, cells: Ints, persons: int | None = None) -> Ints:
    """Sum cells over the rows of each person, as the module's docstring says.

    Parameters
    ----------
    codes : array of int64, shape (rows,)
        Whose row it is, from 0. In no order that matters; that of `PERSON` is summed soonest.
    cells : array of int64, shape (rows,) or (rows, cells)
    persons : int, optional
        How many there are, if not as many as the largest code says.

    Returns
    -------
    array of int64, shape (persons,) or (persons, cells)
        Zero for a person without a row.

    Raises
    ------
    ArgumentError
        If the cells are of another type than int64, or as many as the codes are not.
    """
    if cells.dtype != np.int64 or len(cells) != len(codes):
        raise ArgumentError("cells must be int64, one row of them for each code")
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, cells = codes[order], cells[order]
    if persons is None:
        persons = int(codes[-1]) + 1 if len(codes) else 0
    sums = np.zeros((persons, *cells.shape[1:]), dtype=np.int64)
    if cells.size:
        starts = first_rows(codes)
        largest = max(int(cells.max()), -int(cells.min()))
        longest = int(np.diff(starts, append=len(cells)).max())
        exact = cells if largest * longest <= MOST else cells.astype(object)
        sums[codes[starts]] = np.clip(np.add.reduceat(exact, starts, axis=0), -MOST, MOST)
    return sums
