import dataclasses

import pytest

from dpreg.errors import ArgumentError
from dpreg.privacy.protection import Protection, Stability


def test_it_refuses_what_protects_nobody():
    for neighbors, contributions in (
        ("swap-two", 1),
        ("replace-one", 0),
        ("add-remove", -1),
        ("add-remove", True),
        ("replace-one", 1.0),
    ):
        with pytest.raises(ArgumentError):
            Protection(neighbors, contributions)


def test_it_is_a_value():
    protection = Protection("add-remove", 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        protection.contributions = 1
    assert protection == Protection("add-remove", 3)
    assert len({protection, Protection("add-remove", 3)}) == 1


def test_it_says_what_a_ledger_writes_down():
    assert Protection("replace-one", 1).unit == "replace-one, 1 row a person"
    assert Protection("add-remove", 3).unit == "add-remove, 3 rows a person"


def test_a_replaced_row_is_two_changes():
    assert [Protection(name, 1).changes for name in ("replace-one", "add-remove")] == [2, 1]
    assert Protection("replace-one", 1).n_is_public
    assert not Protection("add-remove", 1).n_is_public


def holds(proved, call):
    """Whether a bound that was proved for some neighbours may be drawn from in a call."""
    objection = Stability(protection=proved).objection("laplace", call, joint=False, divided=False)
    return objection is None


def test_what_is_proved_for_some_neighbours_holds_for_no_others():
    for name in ("replace-one", "add-remove"):
        proved = Protection(name, 2)
        assert holds(proved, Protection(name, 2))
        assert holds(proved, Protection(name, 2, "id"))
        assert holds(Protection(name, 2, "id"), Protection(name, 2, "id"))
        assert not holds(Protection(name, 2, "id"), Protection(name, 2))
        assert not holds(Protection(name, 2, "id"), Protection(name, 2, "other"))
        assert not holds(proved, Protection(name, 3))
    assert not holds(Protection("add-remove", 2), Protection("replace-one", 2))


def test_a_persons_sum_is_one_unit_and_rows_are_as_many_as_they_are():
    for name in ("replace-one", "add-remove"):
        assert Protection(name, 3, "id").sums == Protection(name, 1, "id")
        assert Protection(name, 3).sums == Protection(name, 3)
