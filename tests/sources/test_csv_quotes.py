"""Lines with a quote that is open at their end are taken out, by whichever way is sooner."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpreg.sources import csv_quotes as room
from dpreg.sources.csv_quotes import without_open_quotes

LETTERS = st.sampled_from(['"', '"', ",", "\n", "\r", "a", "1"])
BLOCKS = st.text(LETTERS, max_size=40).map(lambda text: text.encode() + b"\n")
PIECES = st.sampled_from(['"a"', '"a,b"', '"a""b"', '""', '"open', 'b"', "c", '"d\ne"'])
ROWS = st.lists(st.lists(PIECES, min_size=1, max_size=3).map(",".join), min_size=1, max_size=6)


def one_by_one(block: bytes) -> tuple[bytes, int]:
    """Look at every quote."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_only_whole_cells_quoted", lambda block: False)
        return without_open_quotes(block)


@given(BLOCKS)
@example(b'"a"\n')
@example(b'a"b"\n')
@example(b'"a"b\n')
@example(b'"a\n"b"\n')
@example(b'x"y,"open\n')
def test_both_ways_say_the_same(block: bytes) -> None:
    assert without_open_quotes(block) == one_by_one(block)


@given(ROWS)
def test_both_ways_say_the_same_of_rows(rows: list[str]) -> None:
    block = ("\n".join(rows) + "\n").encode()
    assert without_open_quotes(block) == one_by_one(block)


def test_which_lines_are_taken_out() -> None:
    block = b'a,"b"\n1,"open\n"c""d",2\nx"y,"open\n"e","f"\n'
    assert without_open_quotes(block) == (b'a,"b"\n"c""d",2\n"e","f"\n', 2)
    assert without_open_quotes(b'"a","b"\n') == (b'"a","b"\n', 0)


def test_the_sooner_way_is_taken_where_whole_cells_are_quoted() -> None:
    assert room._only_whole_cells_quoted(b'"a",1\n2,"b,c"\r\n')
    assert not room._only_whole_cells_quoted(b'"a"",1\n')
    assert not room._only_whole_cells_quoted(b'"a\nb"\n')
