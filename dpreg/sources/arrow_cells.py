"""How the cells of Arrow arrays are read: in bulk, always with a single cell's meaning.

What a cell means is `dpreg.cells`'s to say; the Arrow type only says which cells an array can hold.
Nothing here raises or warns on a value, and no cell is looked at by Python where its type allows
to read many at once: numbers, truths, dictionaries, text that denotes numbers or levels.

Text that is not UTF-8, which Arrow does not check in a file, denotes no number and no level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from dpreg.arrays import Floats, Ints
from dpreg.cells import Kind
from dpreg.columns import Boolean, Categorical, Columns, ColumnType, PersonId, Unbounded
from dpreg.errors import ArgumentError
from dpreg.sources.base import Chunk, find_column
from dpreg.sources.numpy_cells import Meaning, Values, meaning_of

try:
    import pyarrow
    import pyarrow.compute as compute
except ImportError as missing:
    raise ArgumentError(
        "this kind of table is read through pyarrow, which is not installed: "
        "pip install 'dpreg[arrow]'"
    ) from missing
pa = pyarrow

ArrayReader: TypeAlias = Callable[[Any], Values]
"""Reads a pyarrow Array of one type."""

_FLOAT = pa.float64()
_TEXT = pa.large_string()  # what Arrow's functions take, whatever the text came as

_NUMBERS = meaning_of(Unbounded())
_TRUTHS = ("arrow.bool8",)  # extension types that store truths as integers

# Common ways to write "missing", none of which Python takes for a number.
_NO_NUMBERS = pa.array(
    ["", "NA", "N/A", "#N/A", "na", "null", "NULL", "None", ".", "-", "?"], _TEXT
)


def kind_of_arrow(type: Any) -> Kind:
    """Kind of a column, from its Arrow type alone.

    Parameters
    ----------
    type : pyarrow.DataType

    Returns
    -------
    str
        One of `Kind`. A dictionary is "category" whatever it holds; the null type "object", as an
        object column of pandas of which nothing is known. Extension types are what they store,
        whether their library has registered them in this process or not.
    """
    is_ = pa.types
    if isinstance(type, pa.BaseExtensionType):
        truths = type.extension_name in _TRUTHS
        return "bool" if truths else kind_of_arrow(type.storage_type)
    if is_.is_run_end_encoded(type):
        return kind_of_arrow(type.value_type)
    if is_.is_dictionary(type):
        return "category"
    if is_.is_null(type):
        return "object"
    if is_.is_boolean(type):
        return "bool"
    if is_.is_integer(type) or is_.is_floating(type) or is_.is_decimal(type):
        return "numeric"
    if is_.is_string(type) or is_.is_large_string(type) or is_.is_string_view(type):
        return "string"
    return "datetime" if is_.is_temporal(type) else "other"


def arrow_reader(type: Any, how: ColumnType) -> ArrayReader:
    """Make the function that reads arrays of one Arrow type.

    Parameters
    ----------
    type : pyarrow.DataType
    how : ColumnType

    Returns
    -------
    callable
        From a pyarrow Array of that type, any slice of one, to float64 (NaN: missing), or int32
        codes (-1: missing) where `how` is `Categorical`. It may run in several threads at a time
        and never raises or warns on a value. Without nulls, float64 comes back as a view.
    """
    return np.errstate(all="ignore")(_reader(type, how, meaning_of(how)))


def batch_reader(schema: Any, columns: Columns) -> Callable[[Any], Chunk]:
    """Make the function that turns record batches of one schema into chunks.

    Parameters
    ----------
    schema : pyarrow.Schema
        It may have more columns than are read, in any order.
    columns : mapping of str to ColumnType

    Returns
    -------
    callable
        From a pyarrow RecordBatch of that schema, or a slice of one, to a `Chunk`. As
        `arrow_reader`: threads, silence, views.

    Raises
    ------
    DataError
        If the schema has not each of the names once.
    """
    places = {name: find_column(schema.names, name) for name in columns}
    readers = {n: arrow_reader(schema.field(places[n]).type, how) for n, how in columns.items()}
    return lambda batch: {name: read(batch.column(places[name])) for name, read in readers.items()}


def _reader(type: Any, how: ColumnType, meaning: Meaning) -> ArrayReader:
    is_ = pa.types
    if isinstance(type, pa.BaseExtensionType):
        if type.extension_name in _TRUTHS:
            truths = _truths(meaning)
            return lambda array: truths(compute.not_equal(array.storage, 0))
        stored = _reader(type.storage_type, how, meaning)
        return lambda array: stored(array.storage)
    if is_.is_run_end_encoded(type):
        plain = _reader(type.value_type, how, meaning)
        return lambda array: plain(compute.run_end_decode(array))
    if is_.is_dictionary(type):
        return _labels(_reader(type.value_type, how, meaning), meaning)
    if is_.is_decimal(type):  # cast to floats, Arrow's decimals are rounded twice
        return lambda array: meaning.numbers(_numbers_of_text(array.cast(_TEXT)))
    match kind_of_arrow(type):
        case "bool":
            return _truths(meaning)
        case "numeric":
            return lambda array: meaning.array(array.to_numpy(zero_copy_only=False))
        case "string":
            read = _text_reader(how, meaning)
            return lambda array: read(array.cast(_TEXT))
    return lambda array: meaning.missing(len(array))


def _truths(meaning: Meaning) -> ArrayReader:
    table = meaning.cells([False, True, None])
    return lambda array: table[_codes(array, 2)]


def _codes(array: Any, missing: int) -> Ints:
    """Integers or truths as int64, and another where null."""
    codes = array.cast(pa.int64(), safe=False)
    filled: Ints = compute.fill_null(codes, missing).to_numpy()
    return filled


def _labels(values: ArrayReader, meaning: Meaning) -> ArrayReader:
    """Read dictionary-encoded cells: each entry of the dictionary once, used or not.

    Batches cut from one share its dictionary: the last one's meaning is kept. That it stays
    referred to is what keeps its address from being given to another.
    """
    missing = meaning.cells([None])
    last: tuple[Any, Any, Values] | None = None

    def read(array: Any) -> Values:
        nonlocal last
        known, dictionary = last, array.dictionary
        address = _address(dictionary)
        if known is None or known[1] != address:
            table = np.concatenate([values(dictionary), missing])
            last = known = (dictionary, address, table)
        table = known[2]
        # Arrow leaves places beyond the dictionary undefined; here they must not raise.
        return table.take(_codes(array.indices, len(table) - 1), mode="clip")

    return read


def _address(array: Any) -> tuple[object, ...]:
    buffers = array.buffers()
    return (len(array), array.offset, *(buffer and buffer.address for buffer in buffers))


def _text_reader(how: ColumnType, meaning: Meaning) -> ArrayReader:
    match how:
        case Boolean() | PersonId():
            return lambda array: _each_text_once(array, meaning)
        case Categorical(levels) if isinstance(levels[0], str):
            return _levels_of_text(levels)
    return lambda array: meaning.numbers(_numbers_of_text(array))


def _levels_of_text(levels: tuple[Any, ...]) -> ArrayReader:
    """Look text up among levels; text that is not Unicode cannot be a cell of Arrow's."""
    codes = {level: code for code, level in enumerate(levels) if _is_unicode(level)}
    known = pa.array(list(codes), _TEXT)
    table = np.array([*codes.values(), -1], dtype=np.int32)
    return lambda array: table[_codes(compute.index_in(array, known), len(codes))]


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _numbers_of_text(array: Any) -> Floats:
    """Read text as `dpreg.cells.number` does, in bulk where Arrow agrees on every cell.

    Arrow's grammar of floats, where it accepts a text, gives what Python's gives, or NaN where
    Python refuses ("nan(1)"); it refuses a whole array for one cell. Blanks around a number, which
    it does not allow, and the usual words for a missing cell, are taken away for a second trial.
    """
    bare = array
    for _ in range(2):
        try:
            found: Floats = bare.cast(_FLOAT).to_numpy(zero_copy_only=False)
            return found
        except pa.ArrowInvalid:
            bare = compute.ascii_trim(array, " \t")
            bare = compute.if_else(compute.is_in(bare, _NO_NUMBERS), pa.scalar(None, _TEXT), bare)
    return _each_text_once(array, _NUMBERS)


def _each_text_once(array: Any, meaning: Meaning) -> Values:
    encoded = array.dictionary_encode()
    table = meaning.cells([*_texts(encoded.dictionary), None])
    return table[_codes(encoded.indices, len(table) - 1)]


def _texts(array: Any) -> list[str | None]:
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:
        cells = array.cast(pa.large_binary()).to_pylist()
    return [None if cell is None else cell.decode("utf-8", "surrogateescape") for cell in cells]
