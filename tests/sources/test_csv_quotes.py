"""Lines with a quote that is open at their end are taken out, where a parser could not tell."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpreg.columns import Categorical
from dpreg.sources import csv_files
from dpreg.sources.csv_files import (
    LINE_END,
    after_last_line,
    is_line_by_line,
    without_open_quotes,
)

LEVELS = Categorical(["a", "b"])
LETTERS = st.sampled_from(['"', '"', ",", "\n", "\r", "a", "1"])
BLOCKS = st.text(LETTERS, max_size=40).map(lambda text: text.encode() + b"\n")
PIECES = st.sampled_from(['"a"', '"a,b"', '"a""b"', '""', '"open', 'b"', "c", '"d\ne"', "1", '"2"'])
ROWS = st.lists(st.lists(PIECES, min_size=1, max_size=3).map(",".join), min_size=1, max_size=6)
ENDS = st.sampled_from(["\n", "\r", "\r\n"])


def rows_of(block: bytes, header: list[str]) -> tuple[list[object], int]:
    batches, spoilt = csv_files.parsed(block, header, dict.fromkeys(header, pa.large_string()))
    return [row for batch in batches for row in batch.to_pylist()], spoilt


def check_alike(block: bytes) -> None:
    """Parse each block at once, and with all its lines looked at."""
    for header in (["x"], ["x", "y"]):
        rows, spoilt = rows_of(block, header)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv_files, "is_line_by_line", lambda block, rows: False)
            assert rows_of(block, header) == (rows, spoilt)
        assert len(rows) + spoilt == len(LINE_END.findall(block))


@given(BLOCKS)
@example(b'"a"\n')
@example(b'a"b"\n')
@example(b'"a"b\n')
@example(b'"a"b"\n1,2\n')
@example(b'"a\n"b"\n')
@example(b'x"y,"open\n')
@example(b'1,2\n3,"open\r\n')
@example(b'1,2\r3,"open\r')
@example(b'\xef\xbb\xbf"1,2\n')
@example(b'1,2\r"open\n\n')
@example(b'1,2\r\r"open\n')
def test_a_block_parsed_at_once_is_that_of_its_lines(block: bytes) -> None:
    check_alike(block)


@given(ROWS, ENDS)
def test_rows_parsed_at_once_are_those_of_their_lines(rows: list[str], end: str) -> None:
    check_alike((end.join(rows) + end).encode())


def test_which_lines_are_taken_out() -> None:
    block = b'a,"b"\n1,"open\n"c""d",2\nx"y,"open\n"e","f"\n'
    assert without_open_quotes(block) == (b'a,"b"\n"c""d",2\n"e","f"\n', 2)
    assert without_open_quotes(b'"a","b"\n') == (b'"a","b"\n', 0)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_lines_are_looked_at_where_rows_could_be_several_of_them(end: bytes) -> None:
    def told(rows: int, *lines: bytes) -> bool:
        return is_line_by_line(end.join([*lines, b""]), rows)

    assert told(2, b'"a",1', b'2,"b,c"')
    assert told(7, b"a,1", b"2,b"), "without a quote there is nothing to count"
    assert not told(1, b'"a', b'b",1')
    assert not told(2, b'"a"', b'"b')
    assert told(2, b'"a"', b"")


@given(st.binary(max_size=9000), st.integers(0, 20))
def test_the_last_end_of_a_line(tail: bytes, before: int) -> None:
    """Also beyond the few thousand letters that are looked at first."""
    block = b"1,2\n" * before + tail.replace(b"\n", b"").replace(b"\r", b"")
    assert after_last_line(block, 0, len(block)) == 4 * before
    assert after_last_line(block, 4 * before, len(block)) == 0
    assert after_last_line(block + b"\r", 0, len(block) + 1) == len(block) + 1


def test_many_letters_are_counted_part_by_part() -> None:
    line = b'"a",' + b"1" * 1_000 + b"\r\n"
    lines = 1_000
    block = line * lines
    assert np.frombuffer(block, np.uint8).size > 1 << 19
    assert is_line_by_line(block, lines)
    assert not is_line_by_line(block, lines - 1)
