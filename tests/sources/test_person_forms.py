"""One id is one person in every form that other rows can give its column, and in every table.

A row without an id makes floats of a column of integers; a word makes text of it; a large number, a
truth or a level make other types yet. Each `Form` puts one cell beside such a row, lets a library
choose the types, and reads the cell back.
"""

import io
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpreg.cells import spelling
from dpreg.columns import PersonId
from dpreg.sources import as_source

KEY = bytes(range(32))
OTHERS = [None, 3, -(2**62), 2**64 - 1, 0.5, 1e300, True, "word", "017", "1e5", "\u00e9", " "]
NUMBERS = [0, 17, -2, 2**24 + 1, 10**15 + 5, 2**53 + 1, 2**60 + 1, 0.1 + 0.2, -1.5, 1e22]


def who(data):
    """Name the person of the first row."""
    chunk = next(iter(as_source(data).chunks({"who": PersonId(KEY)})))
    return chunk["who"][0].tolist()


def text(cells):
    return "who,y\n" + "".join(f"{'' if cell is None else cell},1\n" for cell in cells)


def appended(cells):
    parts = [pd.DataFrame({"who": [cell]}) for cell in cells]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pd.concat(parts)


def arrow_csv(cells):
    csv = pytest.importorskip("pyarrow.csv")
    return csv.read_csv(io.BytesIO(text(cells).encode()))


def polars_csv(cells):
    polars = pytest.importorskip("polars")
    return polars.read_csv(text(cells).encode(), infer_schema_length=None)


def dask_frame(cells):
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(pd.DataFrame({"who": cells}), npartitions=1)


FORMS = {
    "list": lambda cells: {"who": cells},
    "frame": lambda cells: pd.DataFrame({"who": cells}),
    "objects": lambda cells: pd.DataFrame({"who": cells}, dtype=object),
    "levels": lambda cells: pd.DataFrame({"who": pd.Categorical(cells)}),
    "appended": appended,
    "best types": lambda cells: pd.DataFrame({"who": cells}).convert_dtypes(),
    "text": lambda cells: pd.DataFrame({"who": list(map(str, cells))}),
    "padded text": lambda cells: pd.DataFrame({"who": [f"{cell!s:>40} " for cell in cells]}),
    "read_csv": lambda cells: pd.read_csv(io.StringIO(text(cells))),
    "read_csv, text": lambda cells: pd.read_csv(io.StringIO(text(cells)), dtype=str),
    "Arrow's read_csv": arrow_csv,
    "Polars's read_csv": polars_csv,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_another_row_has_no_say_in_who_a_row_s_person_is(form, other):
    for cell in [*NUMBERS, "A17", "b-2"]:
        try:
            table = FORMS[form]([cell, other])
        except (TypeError, ValueError, OverflowError, pa.ArrowException):
            continue  # the library refuses: there is no table
        assert who(table) == who({"who": [cell]}), (cell, getattr(table, "dtypes", None))


@pytest.mark.parametrize("form", ["read_csv", "Arrow's read_csv", "frame", "text"])
@pytest.mark.parametrize("word", ["NA", "N/A", "#N/A", "NULL", "null", "n/a", "NaN", "-1.#IND"])
def test_words_for_missing_cells_name_nobody_whatever_the_others_are(form, word):
    """Readers take them for missing among numbers, and some for text among words."""
    for other in ("9", "2.5", "abc"):
        assert who(FORMS[form]([word, other])) == who({"who": [None]})


@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_of_a_file_too(other, tmp_path):
    for place, cell in enumerate([*NUMBERS, "A17", "b-2"]):
        path = tmp_path / f"{place}.csv"
        path.write_text(text([cell, other]))
        assert who(str(path)) == who({"who": [cell]})
        path.write_text(text([float(cell) if type(cell) is int else cell, other]))
        assert who(str(path)) == who({"who": [cell]})


@pytest.mark.xdist_group("cluster")
@pytest.mark.parametrize("other", OTHERS[:4] + OTHERS[6:8], ids=repr)
def test_of_dask_s_partitions_too(other):
    dask = pytest.importorskip("dask.dataframe")
    from dpreg.sources.persons import Persons

    alone, beside = (pd.DataFrame({"who": cells, "y": 1.0}) for cells in ([17], [17, other]))
    frame = dask.from_map(lambda place: [alone, beside][place], [0, 1], meta=beside)
    source = as_source(frame).kept({}, Persons("who", 1, KEY))
    named = {spelling(17), spelling(other)} - {None}
    assert source.count() == len(named)


def test_two_forms_of_one_truth_are_one_person():
    frame = pd.DataFrame({"who": [True, False]})
    for cells in ([True, None], [True, 2], [True, "x"], ["True", "x"], ["TRUE"], ["T"], [1.0]):
        assert who({"who": cells}) == who(frame)
        assert who(pd.DataFrame({"who": cells})) == who(frame)


def test_text_is_one_person_with_blanks_and_however_its_accents_are_written():
    assert spelling("e\u0301mile ") == spelling("\t\u00e9mile")
    assert spelling("emile") != spelling("Emile")


NUMERALS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(-1e300, 1e300), st.fractions().map(float), st.booleans()
)


@settings(deadline=None)
@given(NUMERALS)
def test_all_forms_of_a_number_name_one_person(cell):
    near = float(cell)
    forms = [near, np.float64(near), np.longdouble(near), complex(near), Fraction(near), str(near)]
    forms += [repr(near).upper(), f"  {near!r}\n", f"{near:.15g}", f"{near:.16e}", near.hex()]
    if near.is_integer():
        forms += [int(near), str(int(near)), f"00{int(near)}" if near >= 0 else str(int(near))]
    assert {spelling(form) for form in forms} == {spelling(cell)}
    # What names one person in one form names no other in another.
    assert spelling(spelling(cell)) == spelling(cell)


@settings(deadline=None)
@given(st.integers(-(2**70), 2**70), st.sampled_from([np.float16, np.float32]))
def test_a_float_of_fewer_bits_is_the_id_that_it_was_or_nobody(cell, dtype):
    with np.errstate(over="ignore"):
        rounded = dtype(cell)
    assert spelling(rounded) in (spelling(cell), None)
    arrays = [np.array([rounded]), pa.array([rounded]), pd.arrays.SparseArray([rounded])]
    if dtype is np.float32:
        arrays += [pd.array([rounded], "Float32"), np.array([rounded], complex)[:1].astype("c8")]
    for array in arrays:
        table = pa.table({"who": array}) if isinstance(array, pa.Array) else {"who": array}
        assert who(table) == who({"who": [rounded]})


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_different_numbers_of_fifteen_digits_are_different_persons(one, other):
    assume(one != other)
    assert spelling(one) != spelling(other)
