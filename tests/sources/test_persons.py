"""Which rows of a person are kept: of whose rows that is a function, in every kind of table."""

import hashlib
from collections import Counter
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from dpreg.columns import Categorical, Numeric, PersonId, Unbounded
from dpreg.errors import DataError
from dpreg.privacy.mechanisms.coins import groups_of_coins, secret_key
from dpreg.privacy.protection import Protection
from dpreg.sources import as_source, kept, persons
from dpreg.sources.persons import COIN, Persons, digests, keep, matrix_of
from dpreg.sources.reader import Reader

KEY = bytes(range(32))
COLUMNS = {"x": Unbounded(), "level": Categorical(["a", "b"]), "z": Numeric(0, 9)}


def table(rows=300, people=40, seed=0):
    """Panels of many lengths, with missing cells, missing ids and copies of rows."""
    rng = np.random.default_rng(seed)
    owner = np.minimum(rng.geometric(2 / people, rows), people).astype(float)
    owner[rng.random(rows) < 0.05] = np.nan
    x = rng.integers(0, 3, rows).astype(float)
    x[rng.random(rows) < 0.1] = np.nan
    level = rng.choice(np.array(["a", "b", "c", None], dtype=object), rows)
    return pd.DataFrame({"who": owner, "x": x, "level": level, "z": rng.integers(0, 2, rows)})


class Rows:
    """A tally that hands rows over, each as a number: for tests alone."""

    size = 1 << 14

    def __init__(self, columns=COLUMNS):
        self.columns = tuple(columns)

    def __call__(self, chunks):
        counts = np.zeros(self.size, dtype=object)
        for _, chunk in chunks:
            cells = [np.asarray(chunk[name], dtype=float) for name in (*self.columns, COIN)]
            for row in zip(*cells, strict=True):
                plain = tuple("nan" if cell != cell else cell for cell in row)
                told = hashlib.blake2b(repr(plain).encode(), digest_size=8).digest()
                counts[int.from_bytes(told, "little") % self.size] += 1
        return counts


def kept_rows(data, most=2, key=KEY, columns=COLUMNS):
    reader = Reader(as_source(data), persons=Persons("who", most, key))
    reader.settle(columns)
    return reader.total(columns, Rows(columns), "rows")


def matrix(frame, key=KEY):
    read = {**COLUMNS, "who": PersonId(key)}
    (chunk,) = as_source(frame).chunks(read, max(len(frame), 1))
    return matrix_of(chunk, tuple(COLUMNS), "who")


def multiset(rows):
    return Counter(row.tobytes() for row in np.ascontiguousarray(rows))


def by_person(rows):
    found = {}
    for row in np.ascontiguousarray(rows):
        found.setdefault(row[:2].tobytes(), Counter())[row[2:].tobytes()] += 1
    return found


def slowly_kept(rows, most, key):
    """The definition, person by person, with copies numbered as they come."""
    chosen = Counter()
    for person, owned in by_person(rows).items():
        told = []
        for cells, copies in owned.items():
            for number in range(copies):
                keyed = hashlib.blake2b(digest_size=8, key=key, person=b"dpreg row")
                keyed.update(person + cells + number.to_bytes(8, "little"))
                told.append((int.from_bytes(keyed.digest(), "little"), cells))
        chosen.update(person + cells for _, cells in sorted(told)[:most])
    return chosen


# ---- which rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 3, 7, 1000])
def test_the_rows_kept_are_those_of_the_definition(most):
    rows = matrix(table())
    assert multiset(keep(rows, most, KEY)) == slowly_kept(rows, most, KEY)


def test_no_more_than_k_rows_a_person_and_all_where_there_are_no_more():
    rows = matrix(table())
    owned = {person: sum(cells.values()) for person, cells in by_person(rows).items()}
    assert max(owned.values()) > 3 > min(owned.values())
    kept = {p: sum(cells.values()) for p, cells in by_person(keep(rows, 3, KEY)).items()}
    assert kept == {person: min(many, 3) for person, many in owned.items()}


def test_rows_without_an_id_count_for_nothing():
    frame = table()
    assert len(matrix(frame)) == frame.who.notna().sum() < len(frame)
    assert not len(matrix(frame.assign(who=None)))
    assert keep(matrix(frame.assign(who=None)), 2, KEY).shape == (0, 5)


def test_a_zero_has_one_sign():
    """Copies of a row are interchangeable, and no engine's way to write a zero tells them apart."""
    plus = pd.DataFrame({"who": [1, 1], "x": [0.0, 0.0], "level": "a", "z": [0.0, 0.0]})
    minus = plus.assign(x=[-0.0, 0.0], z=[0.0, -0.0])
    assert matrix(minus).tobytes() == matrix(plus).tobytes()


def order_tells(rows, most, key):
    """A mutant of `keep`: the first rows of each person."""
    seen, chosen = Counter(), []
    for place, row in enumerate(rows):
        seen[row[:2].tobytes()] += 1
        if seen[row[:2].tobytes()] <= most:
            chosen.append(place)
    return rows[chosen]


def one_too_many(rows, most, key):
    """A mutant of `keep`."""
    return keep(rows, most + 1, key)


def everybody_competes(rows, most, key):
    """A mutant of `keep`: as many rows, chosen among those of all persons."""
    ranked = sorted(rows.tolist(), key=lambda row: hashlib.blake2b(repr(row).encode()).digest())
    people = len(by_person(rows))
    return np.array(ranked[: most * people // 2]).reshape(-1, rows.shape[1])


def assert_neighbours_agree(keep, tables=60):
    """Search: one person's rows are replaced, moved, copied, removed; nobody else's change."""
    rng = np.random.default_rng(7)
    for trial in range(tables):
        most = int(rng.integers(1, 4))
        frame = table(rows=60, people=8, seed=trial)
        whose = float(rng.integers(1, 9))
        others = frame[frame.who != whose]
        new = table(rows=int(rng.integers(0, 30)), people=8, seed=trial + 1000).assign(who=whose)
        if trial % 3 == 0:
            new = new.iloc[np.zeros(9, dtype=int)] if len(new) else new  # nine copies of a row
        neighbour = pd.concat([new, others.sample(frac=1, random_state=trial)])
        if trial % 2:
            neighbour = neighbour.sample(frac=1, random_state=trial)
        mine = digests([whose], KEY).tobytes()
        before, after = (by_person(keep(matrix(t), most, KEY)) for t in (frame, neighbour))
        changed = before.pop(mine, Counter()), after.pop(mine, Counter())
        assert max(sum(rows.values()) for rows in changed) <= most
        assert before == after


def test_one_person_s_rows_change_k_kept_rows_at_most_and_nobody_else_s():
    assert_neighbours_agree(keep)


@pytest.mark.parametrize("mutant", [order_tells, one_too_many, everybody_competes])
def test_the_search_sees(mutant):
    with pytest.raises(AssertionError):
        assert_neighbours_agree(mutant)


def test_each_row_is_kept_with_the_same_probability_copies_too():
    """Nine copies and a row of its own: were copies one, a half of all kept would be the latter."""
    people, most = 4000, 2
    who = np.repeat(np.arange(people), 10)
    x = np.tile([1.0] + [0.0] * 9, people)
    frame = pd.DataFrame({"who": who, "x": x, "level": "a", "z": 0})
    share = keep(matrix(frame), most, KEY)[:, 2].mean()
    assert abs(share - 0.1) < 5 * np.sqrt(0.09 / (people * most))


def test_the_key_decides_which():
    rows = matrix(table())
    others = bytes(32)
    assert slowly_kept(rows, 1, KEY) != slowly_kept(rows, 1, others)
    assert multiset(keep(rows, 1, KEY)) != multiset(keep(rows, 1, others))
    assert secret_key() != secret_key()
    assert secret_key(3) == secret_key(3) != secret_key(4)
    assert "key" not in repr(Persons("who", 1, KEY)) + repr(PersonId(KEY))
    assert Persons.of(Protection("replace-one", 2)) is None


def test_who_is_in_which_half_follows_from_the_secret_key():
    """A hash that anyone can work out would tell, for a known id, what its rows were used for."""
    names = [f"p{j}" for j in range(400)]
    frame = pd.DataFrame({"who": names, "x": np.arange(400.0)})

    def halves(key):
        source = kept.kept_source(as_source(frame), {"x": Unbounded()}, Persons("who", 1, key))
        (chunk,) = source.chunks({"x": Unbounded()}, 400)
        order = np.argsort(chunk["x"])
        return groups_of_coins(chunk[COIN], 2)[order]

    one, other = halves(KEY), halves(bytes(32))
    assert (halves(KEY) == one).all()
    assert 100 < (one != other).sum() < 300  # ten standard deviations
    assert not set(digests(names, KEY).tolist()) & set(digests(names, bytes(32)).tolist())


# ---- who is who ----------------------------------------------------------------------------------


def ids(values, how=None):
    """Read ids as a table of some kind has them."""
    source = as_source({"who": values} if how is None else how(values))
    chunks = list(source.chunks({"who": PersonId(KEY)}))
    return np.concatenate([chunk["who"] for chunk in chunks])


@pytest.mark.parametrize(
    "column",
    [
        np.array([17, -2, 17], dtype=np.int64),
        np.array([17, -2, 17], dtype=np.int8),
        np.array([17.0, -2.0, 17.0]),
        np.array([17.0, -2.0, 17.0], dtype=np.float32),
        np.array([17, -2, 17], dtype=complex),
        np.array([17, -2, 17], dtype=np.complex64),
        np.array([17, -2, 17], dtype=np.float16),
        np.array(["17", "-2", "17"]),
        [17, -2.0, "17"],
        [Decimal("17.00"), np.int32(-2), np.float64(17)],
        pd.array([17, -2, 17], dtype="Int64"),
        pd.array([17, -2, 17], dtype="Float64"),
        pd.array(["17", "-2", "17"], dtype="string"),
        pd.Categorical([17, -2, 17]),
        pd.arrays.SparseArray([17, -2, 17]),
        pd.array([17, -2, 17], dtype=pd.ArrowDtype(pa.int64())),
        pd.array([17, -2, 17], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
        pd.array(["17", "-2", "17"], dtype=pd.ArrowDtype(pa.string())),
        pd.array([17, -2, 17], dtype=pd.ArrowDtype(pa.float32())),
    ],
    ids=lambda column: str(getattr(column, "dtype", type(column).__name__)),
)
def test_a_person_is_one_whatever_holds_the_id(column):
    found = ids(column)
    assert found.tolist() == digests(["17", "-2", "17"], KEY).tolist()
    assert len(set(found.tolist())) == 2


class Told(int):
    """A number with code of its own."""

    def __int__(self):
        raise RuntimeError("a cell's own code ran")

    __str__ = __index__ = __hash__ = __int__


def test_what_names_nobody_is_missing():
    nobody = [None, np.nan, pd.NA, pd.NaT, "", "  ", np.inf, b"17", (1,), Told(3), "nan", " -inf"]
    nobody += ["NA", " N/A", "#N/A N/A", "#NA", "NULL", "null", "None", "n/a", "<NA>", "1.#IND"]
    nobody += ["-1.#QNAN", "nan(ind)", "-NaN(0x1)"]
    vast = [Decimal("1e5000"), 10**400, "1e999", "0x1p9999", np.float32(2**24), np.float16(0.5)]
    found = ids([*nobody, *vast, pd.Timestamp("2020-01-01"), Decimal("sNaN")])
    assert not found["high"].any()
    assert not found["low"].any()
    somebody = ids(["a", "A", "1", "1a", "1_0", "0x", "x", False, 0.5, 2**60, 1e300, "\ud800"])
    assert len(set(somebody.tolist())) == len(somebody)


def test_a_column_of_dates_names_nobody_and_is_refused():
    reader = Reader(
        as_source(pd.DataFrame({"who": pd.to_datetime(["2020-01-01"]), "x": [1.0]})),
        persons=Persons("who", 1, KEY),
    )
    with pytest.raises(DataError, match="person='who' holds neither"):
        reader.settle({"x": Unbounded()})
    with pytest.raises(DataError, match="also uses"):
        reader.settle({"who": Unbounded()})


# ---- in every table ------------------------------------------------------------------------------


def parquet(frame, folder):
    frame.to_parquet(folder / "rows.parquet", row_group_size=50)
    return str(folder / "rows.parquet")


def csv(frame, folder):
    cut = len(frame) // 2
    frame[:cut].to_csv(folder / "1.csv", index=False)
    frame[cut:].to_csv(folder / "2.csv", index=False)
    return str(folder / "*.csv")


FORMS = {
    "shuffled": lambda frame, _: frame.sample(frac=1, random_state=3),
    "mapping": lambda frame, _: {name: frame[name].to_numpy() for name in frame},
    "lists": lambda frame, _: {name: frame[name].tolist() for name in frame},
    "arrow": lambda frame, _: pa.Table.from_pandas(frame),
    "a stream that is read once": lambda frame, _: pa.Table.from_pandas(frame).to_reader(70),
    "chunks": lambda frame, _: lambda: iter([frame[:10], frame[10:11], frame[11:]]),
    "parquet": parquet,
    "csv": csv,
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_rows_and_coins_whatever_holds_the_table(form, tmp_path):
    frame = table()
    frame["who"] = frame.who.astype("Int64")
    assert (kept_rows(FORMS[form](frame, tmp_path)) == kept_rows(frame)).all()


def test_chunks_of_any_size_hold_the_same(monkeypatch):
    frame, whole = table(), kept_rows(table())
    monkeypatch.setattr("dpreg.sources.base.rows_of", lambda columns: 7)
    assert (kept_rows(frame) == whole).all()


def test_the_table_is_read_once_however_many_passes_there_are():
    stream = pa.Table.from_pandas(table()).to_reader(70)
    reader = Reader(as_source(stream), persons=Persons("who", 2, KEY))
    reader.settle(COLUMNS)
    reader.require(4, counts=True)
    first, second = (reader.total(COLUMNS, Rows(), "rows") for _ in range(2))
    assert (first == second).all()
    assert reader.passes == 3
    assert reader.rows == int(first.sum())


class Same:
    """A tally that sums what would differ if a pass saw other rows than the one before."""

    def __call__(self, chunks):
        return np.array([sum((chunk["x"] * 1000).sum() for _, chunk in chunks)]).astype(np.int64)


def assert_passes_agree():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"who": np.arange(300) // 10, "x": rng.random(300)})
    reader = Reader(as_source(frame), persons=Persons("who", 2, KEY))
    reader.settle({"x": Unbounded()})
    sums = [reader.total({"x": Unbounded()}, Same(), "x") for _ in range(4)]
    assert all(one == other for one, other in pairwise(sums))


def test_every_pass_sees_the_same_rows(monkeypatch):
    assert_passes_agree()
    chosen = kept.kept_source

    def forgetful(source, columns, whose, advance=None):  # a key for each pass
        reader.clear()
        return chosen(source, columns, Persons(whose.column, whose.rows, secret_key()), advance)

    class Forgetting(Reader):
        __slots__ = ()

        def _read(self):
            self._kept = None
            return super()._read()

    reader = []
    monkeypatch.setattr("dpreg.sources.reader.kept_source", forgetful)
    monkeypatch.setitem(globals(), "Reader", Forgetting)
    with pytest.raises(AssertionError):
        assert_passes_agree()


def test_coins_are_fair_and_go_by_person():
    people = 4000
    frame = pd.DataFrame({"who": np.repeat(np.arange(people), 3), "x": np.arange(3.0 * people)})
    source = kept.kept_source(as_source(frame), {"x": Unbounded()}, Persons("who", 3, KEY))
    (chunk,) = source.chunks({"x": Unbounded()}, 3 * people)
    groups = groups_of_coins(chunk[COIN], 5)
    of_person = pd.Series(groups).groupby((chunk["x"] // 3).astype(int))
    assert (of_person.nunique() == 1).all()
    counts = np.bincount(of_person.first(), minlength=5)
    assert (abs(counts - people / 5) < 5 * np.sqrt(people * 0.16)).all()
    assert persons.coins_of(np.array([2**64 - 1], dtype=np.uint64))[0] < 1


@pytest.mark.xdist_group("cluster")
@pytest.mark.parametrize("partitions", [1, 3])
def test_dask_keeps_the_same_rows(partitions):
    dd = pytest.importorskip("dask.dataframe")
    frame = table()
    spread = dd.from_pandas(frame, npartitions=partitions, sort=False)
    assert (kept_rows(spread) == kept_rows(frame)).all()
    mixed = frame.assign(who=frame.who.astype(object).where(frame.who != 3, "b\udcff"))
    spread = dd.from_pandas(mixed, npartitions=partitions, sort=False)
    assert (kept_rows(spread) == kept_rows(mixed)).all()


@pytest.mark.xdist_group("cluster")
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_spark_keeps_the_same_rows(spark):
    frame = table(120, 15)
    rows = [tuple(None if c != c else c for c in row) for row in frame.itertuples(index=False)]
    schema = "who double, x double, level string, z bigint"
    spread = spark.createDataFrame(spark.sparkContext.parallelize(rows, 3), schema)
    assert (kept_rows(spread) == kept_rows(frame)).all()
    for form in ("float", "decimal(12, 2)", "string", "bigint"):
        cast = spread.withColumn("who", spread["who"].cast(form))
        assert (kept_rows(cast) == kept_rows(frame)).all(), form
