"""Exact normal numbers: by hand from the same bits, their law, and mutants that are caught."""

import random
import subprocess
import sys

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scipy.stats import chisquare, kstest

from dpreg.privacy.mechanisms import wishart as room
from dpreg.privacy.mechanisms.wishart import DIGIT_BITS, Normals

ALPHA = 1e-6
CHANCE = 2**47
X = 2**60


def bits_of(seed):
    return random.Random(seed).getrandbits


def values(numbers):
    digits = numbers.signed_digits().astype(float)
    return (digits * 2.0 ** (-DIGIT_BITS * np.arange(len(digits)))[:, None]).sum(axis=0)


def bound(k, x, bits=60, chance_bits=47):
    """The floor of a(k, x), x in the middle of its interval, in units of 2^-chance_bits."""
    with ctx.workprec(400):
        z = k + arb(2 * x + 1) / arb(2) ** (bits + 1)
        height = arb(fmpq(4, 5)) * arb(2) ** k * (-z * z / 2).exp()
        return int((height * arb(2) ** chance_bits).floor().unique_fmpz())


def test_heights_do_not_hang_on_the_precision_of_who_imports():
    script = (
        "import flint; flint.ctx.prec = 10\n"
        "from dpreg.privacy.mechanisms.wishart import _HEIGHTS\n"
        "print(*_HEIGHTS.tolist())"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert [float(cell) for cell in ended.stdout.split()] == room._HEIGHTS.tolist()
    k = np.arange(17.0)
    np.testing.assert_allclose(room._HEIGHTS, 0.8 * 2**k * np.exp(-k * k / 2), rtol=1e-14)


def by_hand(words):
    """The numbers that these words make, proposal by proposal; x has 60 bits."""
    heads, tails = words[: len(words) // 2], words[len(words) // 2 :]
    for head, tail in zip(heads, tails, strict=True):
        negative, field, chance = head >> 63, head >> 47 & 0xFFFF, head % CHANCE
        k = 16 - field.bit_length()
        assert k < 16
        if chance < bound(k, tail >> 4):
            yield 1 - 2 * negative, k, tail >> 4


def by_rule(proposals, seed):
    """What `_proposals` returns, without its proposals of k >= 16, and the same by hand."""
    source = bits_of(seed)
    drawn = source(128 * proposals)
    words = [drawn >> 64 * place & 2**64 - 1 for place in range(2 * proposals)]
    kept = [drawn]
    negative, k, x, more = room._proposals(
        proposals, lambda number: kept.pop() if kept else source(number)
    )
    assert not more
    return [*zip(1 - 2 * negative, k, x, strict=True)], [*by_hand(words)]


@pytest.mark.parametrize("margin", [2.0**-42, 2.0])
def test_proposals_are_decided_as_by_hand(monkeypatch, margin):
    """In floats where they suffice, and all in balls."""
    monkeypatch.setattr(room, "_MARGIN", margin)
    found, expected = by_rule(1500, 4)
    assert found == expected
    assert 600 < len(found) < 900


def decisions(k, x, around):
    """Decide proposals whose chances lie close to their bound, in floats."""
    exact = bound(k, x)
    chances = np.clip(exact + around, 0, CHANCE - 1)
    taken, undecided = room._in_floats(np.full(len(chances), k), np.full(len(chances), x), chances)
    wrong = ~undecided & ~np.where(taken, chances < exact, chances > exact)
    return wrong, undecided


def all_decisions():
    around = np.arange(-45, 46)
    corners = [0, 1, X - 1, X - 256, X // 2]
    places = [*corners, *(bits_of(7)(60) for _ in range(20))]
    found = [decisions(k, x, around) for k in range(16) for x in places]
    return [np.array(part) for part in zip(*found, strict=True)]


def test_floats_never_decide_wrongly_and_leave_little_open():
    wrong, undecided = all_decisions()
    assert not wrong.any()
    assert not undecided[: 7 * 25, :10].any()  # k < 7: beyond, chances near 0 are all near it
    assert undecided[:, 44:46].all()


@pytest.mark.parametrize(("name", "value"), [("_MARGIN", -(2.0**-40)), ("_DEGREE", 3)])
def test_mutants_that_trust_floats_too_much_are_caught(monkeypatch, name, value):
    monkeypatch.setattr(room, name, value)
    wrong, _ = all_decisions()
    assert wrong.any()


def test_a_proposal_within_the_error_of_its_bound_reads_on():
    """More bits of v and of x, in turn; those of x are kept as digits of the number."""
    x, more = X // 3, [5, 77, 2**20 - 1, 0]
    whole = x
    for digit in more:
        whole = whole << 20 | digit
    exact = bound(2, whole, 140, 147)
    tail = [exact >> 20 * place & 2**20 - 1 for place in (4, 3, 2, 1, 0)]
    for last, taken in ((tail[3] - 2, True), (tail[3] + 2, False)):
        strings = [more[0], tail[0], more[1], tail[1], more[2], tail[2], more[3], last]
        left = strings[::-1]
        assert room._in_balls(2, x, exact >> 100, lambda _, left=left: left.pop()) == (taken, more)
        assert not left


def test_digits_that_were_read_stay(monkeypatch):
    """Forced on proposals at random: their numbers go on with what was read."""
    read = {}

    def reads_on(k, x, chance, source):
        taken, _ = decided(k, x, chance, source)
        read[x] = [source(20) for _ in range(x % 4)]
        return taken, read[x]

    decided = room._in_balls
    monkeypatch.setattr(room, "_MARGIN", 2.0)
    monkeypatch.setattr(room, "_in_balls", reads_on)
    monkeypatch.setattr(room, "_AT_ONCE", 40)
    numbers = Normals.draw(100, 1, bits_of(1))
    assert numbers.digits.shape == (100, 6)
    lengths = set()
    for digits in numbers.digits.tolist():
        x = digits[0] << 40 | digits[1] << 20 | digits[2]
        assert digits[3 : 3 + len(read[x])] == read[x]
        lengths.add(len(read[x]))
    assert lengths == {0, 1, 2, 3}


def test_large_integers_come_from_further_bits():
    """A field of zeros goes on: k = 16 and more, all refused but for a chance of exp(-100)."""
    head, asked = 2**47 - 1, []

    def source(number):
        asked.append(number)
        return head if number == 128 else [0, 0, 1][len(asked) - 2]

    *_, x, more = room._proposals(1, source)
    assert asked == [128, 1, 1, 1]
    assert (len(x), more) == (0, {})


def p_values(numbers):
    drawn = values(numbers)
    counts = [np.bincount(column >> 16, minlength=16) for column in numbers.digits.T[1:]]
    return kstest(drawn, "norm").pvalue, min(chisquare(count).pvalue for count in counts)


def test_numbers_are_normal_and_their_last_digits_fair():
    numbers = Normals.draw(100_000, 120)
    assert numbers.digits.shape == (100_000, 6)
    assert min(p_values(numbers)) > ALPHA
    pairs = values(numbers).reshape(-1, 2).T
    assert abs(np.corrcoef(pairs)[0, 1]) < 0.03
    assert abs(np.corrcoef(pairs**2)[0, 1]) < 0.03


@pytest.mark.parametrize("share", [0.93, 1.08])
def test_heights_a_little_wrong_are_caught(monkeypatch, share):
    monkeypatch.setattr(room, "_HEIGHTS", room._HEIGHTS * np.append(1, np.full(16, share)))
    assert p_values(Normals.draw(300_000, 120, bits_of(0)))[0] < ALPHA


def test_more_digits_continue_the_same_numbers():
    numbers = Normals.draw(50, 1, bits_of(3))
    longer = numbers.continued(5)
    assert (numbers.digits.shape, longer.digits.shape) == ((50, 3), (50, 8))
    np.testing.assert_array_equal(longer.digits[:, :3], numbers.digits)
    assert longer.signs is numbers.signs
    assert longer.wholes is numbers.wholes
    assert len(np.unique(longer.digits[:, 3:])) > 240
