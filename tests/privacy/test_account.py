import copy
import itertools
import pickle
from fractions import Fraction

import pytest
from oracles.bounds import anything

from dpreg.errors import BudgetError
from dpreg.privacy.account import NOT_NEEDED, Account, AccountError
from dpreg.privacy.budget import Budget
from dpreg.privacy.composition import plan_draws
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.protection import Protection

ONE = Budget(1)
HALF = Budget("0.5")
BOUND = anything(joint=True)


def account(budget=ONE, contributions=1):
    return Account(Protection("replace-one", contributions), budget)


def test_the_table_is_made_of_what_was_drawn():
    call = account(Budget(1, "1e-6"))
    first = call.line("radius", "permute-and-flip", Budget("0.25"))
    second = call.line("coefficients", "gram release", Budget("0.75", "1e-6"))
    call.charge(None, "a call")
    assert first.draw("permute-and-flip", BOUND) == Budget("0.25")
    assert second.draw("matrix-laplace", BOUND) == Budget("0.75", "1e-6")
    table = call.table()
    assert [(one.step, one.mechanism, one.budget) for one in table] == [
        ("radius", "permute-and-flip", Budget("0.25")),
        ("coefficients", "gram release", Budget("0.75", "1e-6")),
    ]
    assert table.total == call.total == Budget(1, "1e-6")


def test_the_whole_is_charged_once_with_whom_it_protects():
    ledger = Ledger(2)
    call = account(contributions=3)
    call.line("count", "laplace", HALF)
    call.charge(ledger, "a call")
    (entry,) = ledger.entries
    assert (entry.budget, entry.unit) == (HALF, "replace-one, 3 rows a person")
    with pytest.raises(AccountError, match="charged once"):
        call.charge(ledger, "a call")
    assert len(ledger.entries) == 1


def test_a_charge_that_does_not_fit_leaves_nothing_to_draw_from():
    call = account()
    part = call.line("count", "laplace", ONE)
    with pytest.raises(BudgetError):
        call.charge(Ledger("0.5"), "a call")
    with pytest.raises(AccountError, match="before it is charged"):
        part.draw("laplace", BOUND)


def test_steps_may_not_cost_more_than_the_call():
    call = account()
    call.line("count", "laplace", ONE)
    call.line("more", "laplace", HALF)
    with pytest.raises(AccountError, match=r"cost eps=1\.5 together"):
        call.charge(None, "a call")


@pytest.mark.parametrize(
    ("rows", "fault", "words"),
    [
        (
            "all",
            lambda part: (part.draw("laplace", BOUND), part.draw("laplace", BOUND)),
            "was drawn from before",
        ),
        (
            "all",
            lambda part: part.draw("exponential", BOUND),
            "charged for discrete laplace, not for exp",
        ),
        ("half 1", lambda part: part.draw("laplace", BOUND, "half 2"), "of half 1, not for half 2"),
        ("half 1", lambda part: part.draw("laplace", BOUND), "of half 1, not for all"),
        ("all", lambda part: part.draw("laplace", BOUND, fitted=HALF.eps), "less noise than was"),
        ("all", lambda part: part.draw("laplace", BOUND, fitted=Budget(1, "1e-9")), "less noise"),
        ("all", lambda part: part.split((Fraction(1), Fraction(1, 100))), "do not add up"),
        ("all", lambda part: part.split((Fraction(2), Fraction(-1))), "do not add up"),
        ("all", lambda part: [part.split([Fraction(1)]) for _ in "ab"], "was divided before"),
        ("all", lambda part: (part.across(2), part.draw("laplace", BOUND)), "was divided before"),
        (
            "all",
            lambda part: (part.draw("laplace", BOUND), part.across(2)),
            "was drawn from before",
        ),
        ("all", copy.copy, "may not be copied"),
        ("all", pickle.dumps, "may not be copied"),
    ],
)
def test_what_was_not_charged_cannot_be_drawn(rows, fault, words):
    part = charged_part(rows)
    with pytest.raises(AccountError, match=words) as refusal:
        fault(part)
    assert "'number'" in str(refusal.value)


def charged_part(rows="all"):
    call = account()
    part = call.line("number", "discrete laplace", HALF, rows=rows)
    call.charge(None, "a call")
    return part


def test_no_line_is_opened_after_the_charge():
    call = account()
    call.charge(None, "a call")
    for opened in (
        lambda: call.line("late", "laplace", HALF),
        lambda: call.joint("late", "laplace", HALF),
        lambda: call.draws("late", plan_draws(2, HALF, contributions=1)),
    ):
        with pytest.raises(AccountError, match="'late' is opened after the charge"):
            opened()


def test_a_line_of_all_rows_may_read_some_of_them():
    part = charged_part()
    assert part.draw("laplace", BOUND, "half 1") == HALF


def test_halves_compose_in_parallel():
    call = account()
    parts = [call.line(f"of {half}", "laplace", ONE, rows=half) for half in ("half 1", "half 2")]
    call.charge(None, "a call")
    for part in parts:
        part.draw("laplace", BOUND, part.line.rows)
    assert call.table().total == ONE


def test_shares_of_a_part_are_drawn_one_by_one():
    call = account()
    part = call.line("variance", "laplace", ONE)
    call.charge(None, "a call")
    sums, count = part.split((Fraction(4, 5), Fraction(1, 5)))
    assert (sums.draw("laplace", BOUND).eps, count.cost.eps) == (Fraction(4, 5), Fraction(1, 5))
    with pytest.raises(AccountError, match="'variance' was charged but not drawn from"):
        call.table()
    count.draw("laplace", BOUND)
    assert len(call.table().spends) == 1


def test_groups_of_a_public_column_share_one_cost():
    call = account()
    parts = call.line("median", "permute-and-flip", ONE)
    call.charge(None, "a call")
    for part in parts.across(3):
        assert part.draw("permute-and-flip", BOUND) == ONE
    assert call.table().total == ONE


def test_draws_that_compose_exactly_have_a_part_each():
    plan = plan_draws(5, Budget(1, "1e-6"), mechanism="exponential", contributions=1)
    call = account(Budget(1, "1e-6"))
    parts = call.draws("selection", plan)
    call.charge(None, "a call")
    for part in parts[:-1]:
        assert part.draw("exponential", BOUND) == Budget(plan.eps_each)
    with pytest.raises(AccountError, match="not drawn from"):
        call.table()
    parts[-1].draw("exponential", BOUND)
    (line,) = call.table()
    assert (line.eps, line.delta, line.note) == (plan.cost.eps, plan.cost.delta, plan.rule)


def test_looks_take_shares_of_mu_squared_as_released_values_say():
    call = account(Budget(1, "1e-6"))
    line = call.joint(
        "looks", "adaptive gaussian", call.budget, mu_squared=Fraction(1, 4), by=("gaussian",)
    )
    call.charge(None, "a call")
    first = line.part(Fraction(1, 16))
    with pytest.raises(AccountError, match="less noise than was charged"):
        first.draw("gaussian", BOUND, fitted=Fraction(1, 15))
    first.draw("gaussian", BOUND, fitted=Fraction(1, 16))
    with pytest.raises(AccountError, match="cannot give a part of 1/4"):
        line.part(Fraction(1, 4))
    with pytest.raises(AccountError, match="cannot give a part"):
        line.part(Budget("0.1"))
    rest = line.part()
    for fitted in (None, Budget(0), Budget("0.01")):  # the mu^2 has to be given
        with pytest.raises(AccountError, match="less noise than was charged"):
            rest.draw("gaussian", BOUND, fitted=fitted)
    halves = rest.split((Fraction(1, 2), Fraction(1, 2)))
    assert [half.mu_squared for half in halves] == [Fraction(3, 32)] * 2
    for half in halves:
        half.draw("gaussian", BOUND, fitted=Fraction(3, 32))
    assert call.table().total == Budget(1, "1e-6")


def test_a_pure_joint_line_gives_parts_that_add_up():
    call = account()
    line = call.joint("looks", "matrix laplace", ONE)
    call.charge(None, "a call")
    line.part(Budget("0.15")).draw("matrix laplace", BOUND)
    with pytest.raises(AccountError, match=r"cannot give a part of eps=0\.9"):
        line.part(Budget("0.9"))
    assert line.part().draw("matrix laplace", BOUND) == Budget("0.85")
    assert call.table().total == ONE


def test_a_release_cut_off_a_joint_line_has_its_own_line():
    call = account(Budget(1, "1e-6"))
    joint = call.joint("average", "discrete gaussian", call.budget)
    call.charge(None, "a call")
    window = joint.release("window", "permute-and-flip", Budget("0.3"))
    window.draw("permute-and-flip", BOUND)
    with pytest.raises(AccountError, match="cannot give a part"):
        window.line.part(Budget("0.1"))
    assert joint.part().draw("gaussian", BOUND) == Budget("0.7", "1e-6")
    assert [(line.step, line.eps) for line in call.table()] == [
        ("window", Fraction(3, 10)),
        ("average", Fraction(7, 10)),
    ]
    assert call.total == call.budget
    with pytest.raises(AccountError, match=r"has no eps=0\.1 left"):
        joint.release("another", "laplace", Budget("0.1"))


def test_there_is_no_table_before_the_charge_and_no_copy():
    call = account()
    with pytest.raises(AccountError, match="before the charge"):
        call.table()
    with pytest.raises(AccountError, match="may not be copied"):
        copy.deepcopy(call)


def test_a_line_is_not_copied_either():
    """Each copy could give all that is left once more."""
    line = account().joint("looks", "gaussian", Budget(1, "1e-6"), mu_squared=Fraction(1))
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(AccountError, match="may not be copied"):
            copied(line)


def test_no_way_is_widened_once_the_whole_is_charged():
    call, _, (one, _), _ = ways()
    call.charge(None, "a call")
    with pytest.raises(AccountError, match="opened after the charge"):
        one.line("unpaid", "laplace", HALF)
    with pytest.raises(AccountError, match="charged once"):
        one.charge(None, "a way")
    with pytest.raises(AccountError, match="opened once"):
        account().either(one)


def ways(delta="1e-6"):
    call = account(Budget(1, "1e-5"))
    count = call.line("count", "laplace", Budget("0.1"))
    one, other = (Account(call.protection, Budget("0.9", "1e-5")) for _ in range(2))
    first = one.line("looks", "gaussian", Budget("0.9", delta))
    second = other.line("selection", "laplace", Budget("0.9"))
    call.either(one, other)
    return call, count, (one, first), (other, second)


def test_of_two_ways_the_dearer_is_charged_and_one_is_drawn_from():
    call, count, (one, first), (_, second) = ways()
    ledger = Ledger(Budget(2, "1e-5"))
    with pytest.raises(AccountError, match="before it is charged"):
        first.draw("gaussian", BOUND)
    call.charge(ledger, "a call")
    assert ledger.spent == call.total == Budget(1, "1e-6")
    with pytest.raises(AccountError, match="before it is charged"):
        first.draw("gaussian", BOUND)
    count.draw("laplace", BOUND)
    with pytest.raises(AccountError, match="before the way"):
        call.table()
    call.take(one)
    first.draw("gaussian", BOUND)
    assert [spend.step for spend in call.table()] == ["count", "looks"]
    assert call.table().total == ledger.spent
    with pytest.raises(AccountError, match="before it is charged"):
        second.draw("laplace", BOUND)


def test_each_part_of_the_cost_is_that_of_the_way_that_has_more_of_it():
    for first, second in itertools.permutations((Budget("0.3", "1e-5"), Budget("0.7", "1e-7"))):
        call = account(Budget(1, "1e-5"))
        call.line("count", "laplace", Budget("0.1"))
        for_looks, other = (Account(call.protection, Budget("0.9", "1e-5")) for _ in range(2))
        for_looks.line("looks", "gaussian", first)
        other.line("selection", "gaussian", second)
        call.either(for_looks, other)
        ledger = Ledger(Budget(2, "1e-5"))
        call.charge(ledger, "a call")
        assert ledger.spent == call.total == Budget("0.8", "1e-5")


def test_what_the_other_way_would_have_cost_stays_charged():
    call, count, _, (other, second) = ways()
    call.charge(None, "a call")
    count.draw("laplace", BOUND)
    call.take(other)
    second.draw("laplace", BOUND)
    *_, rest = call.table()
    assert (rest.step, rest.budget, rest.note) == ("the other way", Budget(0, "1e-6"), NOT_NEEDED)
    assert call.table().total == call.total


def test_ways_are_opened_once_and_one_is_taken_once():
    call, _, (one, _), (other, _) = ways()
    with pytest.raises(AccountError, match="opened once"):
        call.either(one, other)
    with pytest.raises(AccountError, match="after the charge"):
        call.take(one)
    call.charge(None, "a call")
    with pytest.raises(AccountError, match="taken, once"):
        call.take(account())
    call.take(one)
    with pytest.raises(AccountError, match="taken, once"):
        call.take(other)
    alien = account(contributions=2)
    with pytest.raises(AccountError, match="protects as"):
        account().either(alien)


def test_nothing_is_taken_from_what_the_ways_reserve():
    call, *_ = ways()
    with pytest.raises(AccountError, match="cannot give a part"):
        call.lines[-1].part(HALF)


def test_ways_that_cost_more_than_is_left_are_refused():
    call = account()
    call.line("count", "laplace", HALF)
    way = account()
    way.line("looks", "laplace", Budget("0.6"))
    call.either(way)
    with pytest.raises(AccountError, match=r"cost eps=1\.1 together"):
        call.charge(None, "a call")
