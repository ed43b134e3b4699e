"""The audit of selections on their exact probabilities, and the mutants that it must catch."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles import neighbours
from oracles.neighbours import MECHANISMS, RELATIONS

from dpreg.arrays import CELL_BITS
from dpreg.formula import design as matrix
from dpreg.privacy import proofs as sensitivity
from dpreg.privacy.mechanisms import choice
from dpreg.privacy.protection import Protection
from dpreg.selection import contest
from dpreg.selection.scoring import problem as scores

EPS = Fraction(1)
ROUNDING = 1e-9  # relative error of the exact probabilities, measured in test_probabilities.py


def _audit(relation: str, changed: int, pairs: int, seed: int = 0) -> dict[str, float]:
    """Return each mechanism's worst |log ratio| / eps over pairs found by search."""
    rng = np.random.default_rng([seed, changed, relation == "add-remove"])
    worst = dict.fromkeys(MECHANISMS, 0.0)
    for one, two in neighbours.search(rng, relation, changed, pairs):
        for mechanism in MECHANISMS:
            ratio = neighbours.worst_ratio(one, two, EPS, mechanism)
            worst[mechanism] = max(worst[mechanism], ratio)
    return worst


@pytest.mark.parametrize("pairs", [300, pytest.param(10_000, marks=pytest.mark.audit)])
@pytest.mark.parametrize("changed", [1, 3])
@pytest.mark.parametrize("relation", RELATIONS)
def test_exact_probabilities_keep_eps_and_waste_none(
    relation: str, changed: int, pairs: int, record: Callable[..., None]
) -> None:
    for mechanism, worst in _audit(relation, changed, pairs).items():
        record("PCLS, exact probabilities", mechanism, relation, changed, pairs, worst)
        assert worst <= 1 + ROUNDING
        assert worst >= 0.95, "noise is wasted, or the search has become weak"


@pytest.mark.parametrize("changed", [1, 3])
@pytest.mark.parametrize("relation", RELATIONS)
def test_integer_scores_stay_in_the_claimed_range(relation: str, changed: int) -> None:
    rng = np.random.default_rng(7)
    worst = max(
        neighbours.range_of_changes(one, two) / one.score_range
        for one, two in neighbours.search(rng, relation, changed, 150)
    )
    assert 0.999 <= worst <= 1


@pytest.mark.parametrize("size", [0, 1, 2])
@pytest.mark.parametrize("relation", RELATIONS)
def test_tiny_tables_stay_in_the_claimed_range(relation: str, size: int) -> None:
    """Every neighbour at the corners of [-1, 1]^3, of every table of 0, 1 or 2 corner rows."""
    corners = np.array(np.meshgrid([-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0])).reshape(3, -1).T
    rng = np.random.default_rng(size)
    tables = [corners[rng.integers(8, size=size)] for _ in range(1 if size == 0 else 4)]
    for table in tables:
        facts = {"neighbors": relation, "max_terms": 1}
        grown = [neighbours.scored(np.vstack([table, row]), **facts) for row in corners]
        smaller = neighbours.scored(table, **facts)
        pairs = (
            [(smaller, one) for one in grown]
            if relation == "add-remove"
            else [(one, two) for one in grown for two in grown]
        )
        for one, two in pairs:
            assert neighbours.range_of_changes(one, two) <= one.score_range


# ---- mutants: dpreg's own functions, patched; each must be caught ----


def _is_caught(relation: str = "replace-one", changed: int = 1) -> bool:
    """Whether the audit above would fail: some ratio is over the claim."""
    neighbours._public_facts.cache_clear()
    worst = _audit(relation, changed, 60)
    neighbours._public_facts.cache_clear()
    return max(worst.values()) > 1 + ROUNDING


def test_the_unpatched_code_is_not_caught() -> None:
    assert not _is_caught()
    assert not _is_caught("add-remove")


def test_mutant_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    real = choice.noise_scale
    monkeypatch.setattr(choice, "noise_scale", lambda *args: real(*args) / 2)
    assert _is_caught()


def _unclipped_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the last line of defence, so that the clip before it is what is tested."""

    def to_grid(block: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        cells = np.nan_to_num(np.rint(block * 2.0**CELL_BITS))
        if out is not None:
            out[...] = cells
        return cells

    monkeypatch.setattr(matrix, "to_grid", to_grid)


def _clipped_scale(monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    """Clip the design's columns ("x") or the response ("y") there, so that the other is tested."""
    product, honest = matrix.multiplied, matrix.scale
    last: list[str] = []

    def multiplied(parts: Any, values: Any) -> np.ndarray:
        last[:] = [part.factor.code for part in parts]
        return product(parts, values)

    def scale(raw: np.ndarray, offset: float, width: float, out: np.ndarray) -> None:
        honest(raw, offset, width, out)
        if ("y" if last == ["y"] else "x") == which:
            np.clip(out, -1.0, 1.0, out=out)

    monkeypatch.setattr(matrix, "multiplied", multiplied)
    monkeypatch.setattr(matrix, "scale", scale)


def _unclipped_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    real = matrix.clean_cells
    monkeypatch.setattr(
        matrix, "clean_cells", lambda chunk, types, clipped: real(chunk, types, clipped=False)
    )


def test_mutant_no_clipping_of_y(monkeypatch: pytest.MonkeyPatch) -> None:
    _unclipped_grid(monkeypatch)
    _unclipped_cells(monkeypatch)
    _clipped_scale(monkeypatch, "x")
    assert _is_caught()


def test_mutant_no_clipping_of_x(monkeypatch: pytest.MonkeyPatch) -> None:
    _unclipped_grid(monkeypatch)
    _unclipped_cells(monkeypatch)
    _clipped_scale(monkeypatch, "y")
    assert _is_caught()


def test_one_clip_of_two_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clips back each other up: without the first the grid's still holds."""
    _unclipped_cells(monkeypatch)
    assert not _is_caught()


def test_mutant_one_bound_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss at t = -rho less the loss at t = +rho, where the vertex t = y was meant."""

    def same_end(rho: Fraction) -> Fraction:
        return (rho**2 + 2 * rho) - (rho**2 - 2 * rho) if rho < 1 else rho**2 + 2 * rho

    monkeypatch.setattr(sensitivity, "loss_range", same_end)
    assert _is_caught()


def test_mutant_swapped_relations(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Protection.changes.fget
    monkeypatch.setattr(Protection, "changes", property(lambda self: 3 - honest(self)))
    assert _is_caught("replace-one")


def test_mutant_forgotten_contributions(monkeypatch: pytest.MonkeyPatch) -> None:
    real = contest.score_range

    def forgetful(rho: Fraction, protection: Protection) -> Any:
        return real(rho, Protection(protection.neighbors))

    monkeypatch.setattr(contest, "score_range", forgetful)
    assert _is_caught(changed=3)


def _coarse_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid of step 1, on which the slack for rounding is no longer a trifle."""
    for module in (sensitivity, contest, scores):
        monkeypatch.setattr(module, "score_grid", lambda rho: Fraction(1))


def _worst_on_a_coarse_grid() -> float:
    """At rho = 3/4 one row moves two models by 2.0625 and -0.9375; the floors carry to 3 and -1."""
    neighbours._public_facts.cache_clear()
    pair = neighbours.proved_worst("add-remove", 1, 60)
    facts = {"neighbors": "add-remove", "max_terms": 1, "radius": "0.75"}
    worst = 0.0
    for response in np.linspace(-1, 1, 81):
        common = np.vstack([pair.common, [0.0, 0.5, response]])
        tables = common, np.vstack([common, pair.first])
        one, two = (neighbours.scored(table, **facts) for table in tables)
        ratios = [neighbours.worst_ratio(one, two, EPS, mechanism) for mechanism in MECHANISMS]
        worst = max(worst, *ratios)
    neighbours._public_facts.cache_clear()
    return worst


def test_mutant_grid_slack_dropped_under_add_remove(monkeypatch: pytest.MonkeyPatch) -> None:
    _coarse_grid(monkeypatch)
    assert _worst_on_a_coarse_grid() <= 1 + ROUNDING
    monkeypatch.setattr(sensitivity, "ROUNDING_SLACK", 0)
    assert _worst_on_a_coarse_grid() > 1 + ROUNDING


def test_mutant_shift_of_scores_by_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """A penalty that is multiplied by the residuals of the full model, taken from the rows."""
    real = contest.Contest.totals

    def shifted(self: contest.Contest, q: np.ndarray, models: np.ndarray, space: object) -> object:
        return real(self, q, models, space) + 2 * models.sum(axis=1) * int(q.min())

    monkeypatch.setattr(contest.Contest, "totals", shifted)
    assert _is_caught()


# ---- canonical scores ----


def _history_changes_scores() -> bool:
    """Whether a table's scores depend on what was scored before it."""
    rng = np.random.default_rng(5)
    tables = [rng.uniform(-1, 1, size=(30, 3)) for _ in range(6)]
    forwards = [neighbours.scored(table, formula="y ~ a + b").scores for table in tables]
    backwards = [neighbours.scored(t, formula="y ~ a + b").scores for t in reversed(tables)]
    return any((one != two).any() for one, two in zip(forwards, reversed(backwards), strict=True))


def test_scores_do_not_depend_on_history() -> None:
    assert not _history_changes_scores()


def test_mutant_warm_start_that_changes_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that starts from the last table's answer and stops short of the certificate."""
    real = scores.Problem.scores
    last: list[np.ndarray] = []

    def warm(self: scores.Problem, columns: np.ndarray) -> np.ndarray:
        found = real(self, columns)
        started = (found + last[-1]) // 2 if last and last[-1].shape == found.shape else found
        last.append(found)
        return np.maximum(found, np.minimum(started, found + 1))

    monkeypatch.setattr(scores.Problem, "scores", warm)
    assert _history_changes_scores()
