"""A pass over a Dask DataFrame is the pass over the same rows in pandas, bit for bit."""

import itertools
import os
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from importlib import metadata
from types import SimpleNamespace

import dask
import dask.array
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from oracles.tallies import (
    COLUMNS,
    ROWS,
    Killed,
    Leaks,
    Mixed,
    Sums,
    Wide,
    check_halves,
    table,
)

import dpreg
import dpreg.sources.dask as dask_module
from dpreg.columns import Unbounded
from dpreg.errors import ArgumentError, DataError
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.mechanisms.coins import Coins
from dpreg.sources import Source, as_source

pytestmark = pytest.mark.xdist_group("cluster")


def split(frame, parts):
    """Cut a frame into partitions, any number of which may be empty."""
    cuts = np.linspace(0, len(frame), parts + 1).astype(int)
    return together([frame.iloc[a:b] for a, b in itertools.pairwise(cuts)])


def together(frames):
    delayed = [dask.delayed(frame) for frame in frames]
    return dd.from_delayed(delayed, meta=frames[0].iloc[:0], verify_meta=False)


@pytest.fixture(autouse=True)
def _no_rows_leave(monkeypatch):
    """A frame that is computed would bring its rows here."""

    def refuse(self, *args, **kwargs):
        raise AssertionError("rows were asked for")

    monkeypatch.setattr(dd.DataFrame, "compute", refuse)
    monkeypatch.setattr(dd.Series, "compute", refuse)


@pytest.fixture(params=["synchronous", "threads", "cluster"])
def scheduler(request):
    if request.param != "cluster":
        with dask.config.set(scheduler=request.param):
            yield request.param
    else:
        with request.getfixturevalue("dask_client").as_current():
            yield request.param


def both(frame, data, tally, **options):
    columns = {name: COLUMNS[name] for name in COLUMNS if name in frame}
    return [as_source(one).total(columns, tally, **options) for one in (frame, data)]


@pytest.mark.parametrize("parts", [1, 3, 17])
def test_vectors_are_those_of_pandas(scheduler, parts):
    told = []
    frame = table()
    want, got = both(frame, split(frame, parts), Sums.of(COLUMNS, scale=2**40), advance=told.append)
    assert got.dtype == object
    assert list(got) == list(want)
    assert all(type(entry) is int for entry in got)
    assert sum(told) == 1 + parts  # pandas: one block
    assert max(want) > 2**64


@pytest.mark.parametrize("parts", [1, 3, 17])
def test_a_seeded_row_keeps_its_group(scheduler, parts):
    frame = table()
    coins = Coins(3, key=11)
    want, got = both(frame, split(frame, parts), Sums.of(COLUMNS, coins), positions=True)
    assert list(got) == list(want)


def test_a_start_from_elsewhere_is_seen():
    """The test above must be able to fail: groups follow places."""
    frame = table()
    want, got = both(frame, split(frame, 3), Sums.of(COLUMNS, Coins(3, key=11)))
    assert list(got) != list(want)


def test_a_processes_scheduler_will_do():
    frame = table()
    with dask.config.set(scheduler="processes", num_workers=1):
        want, got = both(frame, split(frame, 3), Sums.of(COLUMNS))
    assert list(got) == list(want)


def test_empty_partitions_and_tables_count_for_nothing(scheduler):
    frame = table(5)
    want, got = both(frame, split(frame, 9), Sums.of(COLUMNS, Coins(2, key=1)), positions=True)
    assert list(got) == list(want)
    told = []
    want, got = both(frame[:0], split(frame[:0], 2), Sums.of(COLUMNS), advance=told.append)
    assert list(got) == list(want)
    assert not any(got)
    assert told == [2]


def test_what_is_public_is_the_frame_s_own_word():
    frame = table()
    source = as_source(split(frame, 3))
    assert isinstance(source, Source)
    assert source.names == as_source(frame).names
    assert [source.kind(n) for n in source.names] == [
        as_source(frame).kind(n) for n in source.names
    ]
    assert (source.rows, source.parts, source.unit, source.rereadable) == (
        None,
        3,
        "partition",
        True,
    )
    assert source.count() == ROWS
    assert repr(source) == repr(as_source(frame))
    with pytest.raises(DataError, match="not pickled"):
        source.__reduce_ex__(2)


def test_partitions_of_other_dtypes_are_read_cell_by_cell():
    frames = [
        pd.DataFrame({"x": [1.5, np.nan]}),
        pd.DataFrame({"x": ["2", "none"]}),
        pd.DataFrame({"x": [True, None]}, dtype=object),
        pd.DataFrame({"x": pd.to_datetime(["2001-01-01"])}),
    ]
    cells = pd.DataFrame({"x": [1.5, None, 2, None, 1, None, None]}, dtype=object)
    data = together(frames)
    columns = {"x": Unbounded()}
    assert list(as_source(data).total(columns, Sums.of(columns))) == list(
        as_source(cells).total(columns, Sums.of(columns))
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"absent": Unbounded()}, "no column 'absent'"),
        ({"text": Unbounded()}, "holds text or labels and the schema does not declare it"),
        ({"label": Unbounded()}, "holds text or labels and the schema does not declare it"),
        ({"day": Unbounded()}, "holds dates or times"),
        ({"x": "numeric"}, "no known type"),
        ({}, "at least one column"),
    ],
)
def test_a_mismatch_is_refused_as_in_pandas_before_anything_is_computed(columns, message):
    def never():
        raise AssertionError("a partition was computed")

    meta = table(0).assign(day=pd.Series([], dtype="datetime64[ns]"))
    data = dd.from_delayed([dask.delayed(never)()], meta=meta, verify_meta=False)
    errors = []
    for one in (meta, data):
        with pytest.raises(ValueError, match=message) as caught:
            as_source(one).total(columns, Wide(1))
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


def test_only_frames_with_plain_labels_are_taken():
    levels = pd.DataFrame({("a", "b"): [1.0]})
    with pytest.raises(DataError, match="several levels"):
        as_source(dd.from_pandas(levels, npartitions=1))
    for other in (dask.delayed(1), dask.bag.from_sequence([1]), split(table(), 1)["x"]):
        with pytest.raises(ArgumentError, match="give a Dask DataFrame"):
            as_source(other)
    odd = dd.from_pandas(pd.DataFrame({0: [1.0], "x": [2.0]}), npartitions=1)
    assert as_source(odd).names == ("x",)


@pytest.mark.parametrize("where", ["tally", "plan"])
def test_a_failure_tells_its_class_and_nothing_of_the_rows(scheduler, where, capfd):
    def broken(frame):
        if len(frame):
            raise KeyError(f"secret {frame['text'].iloc[0]}")
        return frame

    data = split(table(), 3)
    tally = Leaks("x", KeyError)
    if where == "plan":
        data, tally = data.map_partitions(broken, meta=data._meta), Wide(1)
    with pytest.raises(DataError, match="Dask failed while it read the rows: KeyError") as caught:
        as_source(data).total({"x": Unbounded()}, tally)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "secret" not in "".join(traceback.format_exception(error))
    if where == "tally":
        assert "secret" not in "".join(capfd.readouterr())


def test_an_interrupt_is_one():
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(KeyboardInterrupt),
    ):
        as_source(split(table(), 2)).total({"x": Unbounded()}, Leaks("x", KeyboardInterrupt))


# ---- workers of another version ------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.0.1", ""])
def test_a_worker_of_another_version_is_refused_before_the_charge(dask_client, version):
    def pretend():
        honest = metadata.version

        def other(name):
            if version:
                return version
            raise metadata.PackageNotFoundError(name)

        other.honest, metadata.version = honest, other

    def restore():
        metadata.version = metadata.version.honest

    frame, ledger = split(table(), 3), Ledger(1)
    told = f"workers of Dask have {f'dpreg {version}' if version else 'no dpreg'}: install"
    with dask_client.as_current():
        worker = next(iter(dask_client.scheduler_info()["workers"]))
        dask_client.run(pretend, workers=[worker])
        try:
            with pytest.raises(DataError, match=told):
                dpreg.dp_mean("x", frame, eps=1, schema={"x": (0, 1)}, budget=ledger)
            with dask.config.set(scheduler="threads"):
                as_source(frame)  # the cluster has no part in it
        finally:
            dask_client.run(restore, workers=[worker])
        as_source(frame)
    assert ledger.entries == ()


# ---- workers that are lost, tasks that run twice -------------------------------------------------


def test_a_killed_worker_leaves_each_row_in_one_half(dask_client, tmp_path):
    flag = tmp_path / "killed"
    before = worker_processes(dask_client)

    def total(frame, tally):
        killing = Killed(tally, flag, os.getpid(), after=3)
        return as_source(split(frame, 17)).total(COLUMNS, killing)

    with dask_client.as_current():
        check_halves(total)
    assert flag.exists()
    dask_client.wait_for_workers(2, timeout=30)
    assert worker_processes(dask_client) != before


def worker_processes(client):
    return set(client.run(os.getpid).values())


def test_two_passes_at_once_are_two(dask_client):
    source = as_source(split(table(), 5))
    with dask_client.as_current(), ThreadPoolExecutor(2) as pool:
        run = [copy_context().run for _ in "ab"]
        passes = [pool.submit(one, source.total, COLUMNS, Sums.of(COLUMNS)) for one in run]
        first, second = (list(one.result()) for one in passes)
    assert first == second == list(as_source(table()).total(COLUMNS, Sums.of(COLUMNS)))


def test_mixed_attempts_would_be_caught():
    """The mutant's partition has one part of its vector from another attempt than the other."""

    def total(frame, tally):
        return as_source(split(frame, 3)).total(COLUMNS, tally)

    check_halves(total)
    with pytest.raises(AssertionError):
        check_halves(lambda frame, tally: total(frame, Mixed(tally)))


def test_a_pass_for_each_half_would_be_caught():
    def total(frame, tally):
        source = as_source(split(frame, 3))
        first, second = (source.total(COLUMNS, tally).reshape(2, -1) for _ in range(2))
        return np.concatenate([first[0], second[1]])

    with pytest.raises(AssertionError):
        check_halves(total)


def test_a_pass_takes_no_vector_of_another(dask_client):
    """Not even where the cluster still holds those of an earlier pass over the same rows."""
    source = as_source(split(table(), 3))
    held = []
    tree = dask_module._tree

    def hold(nodes, run):
        held.extend(dask_client.persist(nodes))
        return tree(nodes, run)

    with dask_client.as_current(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_module, "_tree", hold)
        tally = Sums.of(COLUMNS, Coins(2))
        first, second = (list(source.total(COLUMNS, tally)) for _ in range(2))
    assert first != second


def test_keys_made_of_the_input_would_be_caught(dask_client, monkeypatch):
    """The mutant names its tasks by what goes in, as map_partitions would."""
    fixed = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex="same"))
    monkeypatch.setattr(dask_module, "uuid", fixed)
    with pytest.raises(AssertionError):
        test_a_pass_takes_no_vector_of_another(dask_client)


def test_a_tree_holds_few_vectors_at_a_time():
    """A task adds eight vectors at most, so that no one holds a partition's worth for all."""
    sizes = []
    with pytest.MonkeyPatch.context() as patch:
        added = dask_module.added
        patch.setattr(dask_module, "added", lambda v: sizes.append(len(v)) or added(v))
        total = as_source(split(table(), 17)).total({"x": Unbounded()}, Wide(1000))
    assert set(total) == {ROWS}
    assert sorted(sizes) == [1, 3, 8, 8]
