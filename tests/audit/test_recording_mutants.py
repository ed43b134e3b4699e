"""Faults in the wiring, planted one at a time: each is refused, or found by the recording test."""

from __future__ import annotations
import __future__

import inspect
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from oracles.recorded_calls import MATRIX, recorded

from dpreg.api import blockwise, quantile, select_route
from dpreg.api import staged as staged_reads
from dpreg.estimation import aggregate, coding, gram, histogram, perturbed, sums
from dpreg.estimation import quantile as quantile_choice
from dpreg.formula import bounds
from dpreg.privacy import account, look_noise, quantiles, ranks, tail_noise, vector_noise
from dpreg.privacy.account import AccountError
from dpreg.selection import contest, engine, estimates, preparation, run
from dpreg.staged import looks, plan

ALL = "__import__('dataclasses').replace(everyone, group={!r})"


@dataclass(frozen=True)
class Mutant:
    """One changed line, the promise that it breaks, and the call that must notice."""

    owner: Any
    name: str
    old: str
    new: str
    cell: str
    refused: bool = False

    def plant(self, patch: pytest.MonkeyPatch) -> None:
        honest = getattr(self.owner, self.name)
        source = textwrap.dedent(inspect.getsource(honest))
        assert self.old in source, f"{self.name} no longer reads {self.old!r}"
        module = sys.modules[honest.__module__]
        code = compile(
            source.replace(self.old, self.new),
            f"<mutant of {self.name}>",
            "exec",
            flags=__future__.annotations.compiler_flag,
        )
        made: dict[str, Any] = {}
        exec(code, vars(module), made)
        changed = made[self.name]
        if inspect.isclass(self.owner):
            patch.setattr(self.owner, self.name, changed)
            return
        for name, other in list(sys.modules.items()):
            if name.startswith("dpreg"):
                for key, value in list(vars(other).items()):
                    if value is honest:
                        patch.setattr(other, key, changed)


def cell(call: str, *parts: str) -> str:
    """Return the first cell of this call whose options hold all of these."""
    (name, *_) = [n for n in MATRIX if n.startswith(f"{call}(") and all(p in n for p in parts)]
    return name


K3, REPLACE, ADD = "contributions=3", "'replace-one'", "'add-remove'"
PRIVATE = cell("select", "sigma2='private'", REPLACE, K3)
LOOKS = cell("select", "method='staged'", REPLACE, K3)
GAUSSIAN_LOOKS = cell("ols", "method='staged'", REPLACE, K3, "'gaussian'")
SPLIT_LOOKS = cell("select", "fit='split'", "eps=60", REPLACE, K3)
COUNTED = cell("select", "method='auto'", ADD)
ONE = "type(part.protection)(part.protection.neighbors, 1)"
MUTANTS = {
    "sigma2 counts at the whole eps": Mutant(
        estimates, "private_sigma2", "(Fraction(4, 5), Fraction(1, 5))", "(Fraction(1),) * 2",
        PRIVATE, refused=True,
    ),
    "the count of sigma2 at five times its share": Mutant(
        estimates, "_counted", ".eps\n", ".eps * 5\n", PRIVATE
    ),
    "delta spent twice with several rows a person": Mutant(
        preparation, "_deltas", 'request.fit == "split" and one_row', 'request.fit == "split"',
        cell("select", "draws=40", K3), refused=True,
    ),
    "every column's bounds at the whole eps": Mutant(
        bounds, "open_bounds", " / max(len(names), 1)", "",
        cell("select", "schema='bare'"), refused=True,
    ),
    "a search for bounds at five times its share": Mutant(
        quantiles.BoundsSearch, "_pick", "part.draw(mechanism).eps", "part.draw(mechanism).eps * 5",
        cell("ols", "schema='bare'"),
    ),
    "bounds forget contributions": Mutant(
        quantiles.BoundsSearch, "_pick", "self._protection.contributions", "1",
        cell("ols", "schema='bare'", K3),
    ),
    "coefficients at one row a person": Mutant(
        gram, "release_gram", "part.cost, part.protection", f"part.cost, {ONE}", cell("ols", K3)
    ),
    "coefficients of a selection at one row a person": Mutant(
        gram, "release_gram", "part.cost, part.protection", f"part.cost, {ONE}", cell("select", K3)
    ),
    "the radius at the whole eps": Mutant(
        estimates, "private_radius", '(_CHOOSER).eps', '(_CHOOSER).eps * 10',
        PRIVATE,
    ),
    "the radius forgets contributions": Mutant(
        estimates, "private_radius", "2 * part.protection.contributions", "2", PRIVATE
    ),
    "each of K draws at the eps of all": Mutant(
        account.Account, "draws", "Budget(plan.eps_each)", "plan.cost", cell("select", "draws=3")
    ),
    "each of K draws of a tree at the eps of all": Mutant(
        account.Account, "draws", "Budget(plan.eps_each)", "plan.cost",
        cell("select", "engine='tree', draws=4"), refused=True,
    ),
    "all draws from the first one's part": Mutant(
        run, "select", "for part in preparation.parts.draws",
        "for part in preparation.parts.draws[:1] * 3", cell("select", "draws=3"), refused=True,
    ),
    "the noisy count forgets contributions": Mutant(
        estimates, "_counted", "part.protection.contributions / eps", "1 / eps",
        cell("select", "sigma2='1/20'", ADD, K3),
    ),
    "PCPL's bound forgets contributions": Mutant(
        estimates, "noisy_residuals", "part.protection.contributions", "1",
        cell("select", "method='pcpl'", K3),
    ),
    "PCPL's shift forgets contributions": Mutant(
        estimates, "lower_bound", "part.protection.contributions", "1",
        cell("select", "method='pcpl'", K3),
    ),
    "the tree at twice the rate": Mutant(
        engine, "models_of", "t=effective_t(", "t=2 * effective_t(",
        cell("select", "engine='tree'"), refused=True,
    ),
    "the list at twice the rate": Mutant(
        engine, "draw_model", "scores, eps=eps,", "scores, eps=2 * eps,", cell("select")
    ),
    "coefficients read all rows under split": Mutant(
        run, "read_rows", '"split": of_half[-1]', '"split": everyone', cell("select"), refused=True
    ),
    "coefficients read all rows, called a half": Mutant(
        run, "read_rows", '"split": of_half[-1]', f'"split": {ALL.format("half 2")}', cell("select")
    ),
    "coefficients read the rows of the selection": Mutant(
        run, "read_rows", '"split": of_half[-1]', '"split": of_half[0]', cell("select"),
        refused=True,
    ),
    "the selection reads both halves": Mutant(
        run, "read_rows", "selecting=of_half[0]", "selecting=everyone", cell("select"), refused=True
    ),
    "the selection reads both halves, called one": Mutant(
        run, "read_rows", "selecting=of_half[0]", f"selecting={ALL.format('half 1')}",
        cell("select"),
    ),
    "scores under the other relation": Mutant(
        contest, "least_squares_contest", "protection.neighbors", "'add-remove'",
        cell("select", REPLACE),
    ),
    "scores forget contributions": Mutant(
        contest, "least_squares_contest", "protection.contributions", "1", cell("select", K3)
    ),
    "PCPL's scores under the other relation": Mutant(
        contest, "profile_contest", "protection.neighbors", "'add-remove'",
        cell("select", "method='pcpl'", REPLACE),
    ),
    "Gaussian moments under the other relation": Mutant(
        gram, "_gaussian_plan", "protection.neighbors", "'add-remove'",
        cell("ols", REPLACE, "'gaussian'"),
    ),
    "K-norm moments under the other relation": Mutant(
        gram, "_knorm_plan", "protection.neighbors", "'add-remove'", cell("ols", "unsafe_seed=3")
    ),
    "Laplace moments forget contributions": Mutant(
        gram, "_laplace_plan", "protection.contributions", "1", cell("ols", "'laplace'", K3)
    ),
    "AdaSSP forgets contributions": Mutant(
        perturbed, "release_sums", "contributions=protection.contributions", "contributions=1",
        cell("ols", "'adassp'", K3),
    ),
    "SSP under the other relation": Mutant(
        perturbed, "release_sums", "neighbors=protection.neighbors", "neighbors='add-remove'",
        cell("ols", "'ssp'", REPLACE),
    ),
    "sums of groups at half their sensitivity": Mutant(
        coding.Coding, "sensitivity", "2 * first, 2 * second", "first, second",
        cell("mean", "by='g')", REPLACE),
    ),
    "sums forget contributions": Mutant(
        sums, "plan", "protection.contributions, grouped", "1, grouped", cell("mean", K3),
    ),
    "sums under the other relation": Mutant(
        sums, "plan", "protection.neighbors, protection.contributions, grouped",
        "'add-remove', protection.contributions, grouped",
        cell("suffstats", REPLACE, "'gaussian'"),
    ),
    "counts under the other relation": Mutant(
        histogram, "count_noise", "protection.neighbors", "'add-remove'", cell("histogram", REPLACE)
    ),
    "counts forget contributions": Mutant(
        histogram, "count_noise", "protection.contributions", "1", cell("histogram", ADD, K3)
    ),
    "quantiles forget that rows move between groups": Mutant(
        quantile_choice, "private_quantile", "grouped=grouped", "grouped=False",
        cell("quantile", "by='g'", REPLACE),
    ),
    "ranks at twice their eps": Mutant(
        ranks, "choose_rank", '("permute-and-flip").eps', '("permute-and-flip").eps * 2',
        cell("quantile", ADD),
    ),
    "numbers of values of groups as of one": Mutant(
        quantile, "_opened", "if not grouped:", "if True:", cell("quantile", "by='g'", REPLACE)
    ),
    "block values forget that rows move between groups": Mutant(
        blockwise.Aggregate, "steps", "changes if groups.levels else 1", "changes if False else 1",
        cell("aggregate", "by='g'", REPLACE),
    ),
    "block values of a person as of one group": Mutant(
        blockwise.Aggregate, "steps", "min(moved, lines)", "1",
        cell("aggregate", "person", "by='g'"),
    ),
    "the number of rows for blocks forgets contributions": Mutant(
        blockwise.Aggregate, "steps", '"add-remove", choices.protection.contributions',
        '"add-remove", 1', cell("aggregate", "person", REPLACE),
    ),
    "a window forgets that several values move": Mutant(
        aggregate, "window", "2 * moved * RANK_UNIT", "2 * RANK_UNIT",
        cell("aggregate", "winsorized", K3),
    ),
    "noise fitted to another cost": Mutant(
        vector_noise, "fit_noise", "VectorNoise(mechanism, scale, variance, eps, Fraction(0))",
        "VectorNoise(mechanism, scale / 2, variance, 2 * eps, Fraction(0))", cell("mean"),
        refused=True,
    ),
    "a look drawn twice": Mutant(
        looks, "_release", "drawn = noise.draw(part, moments.group)",
        "drawn = noise.draw(part, moments.group) and noise.draw(part, moments.group)",
        LOOKS, refused=True,
    ),
    "a Gaussian look drawn twice": Mutant(
        looks, "_release", "drawn = noise.draw(part, moments.group)",
        "drawn = noise.draw(part, moments.group) and noise.draw(part, moments.group)",
        GAUSSIAN_LOOKS, refused=True,
    ),
    "every look at the whole eps": Mutant(
        plan, "plan_looks", "tuple(whole * share for share in shares)",
        "tuple(whole for share in shares)", LOOKS, refused=True,
    ),
    "every Gaussian look at the whole": Mutant(
        plan, "plan_looks", "tuple(whole * share for share in shares)",
        "tuple(whole for share in shares)", GAUSSIAN_LOOKS,
    ),
    "looks beside bounds at the whole eps": Mutant(
        select_route, "_planned", "(1 - counted_at) * (1 - share)", "(1 - counted_at)",
        cell("select", "method='staged'", "schema='bare'"), refused=True,
    ),
    "coins of halves drawn anew for each pass": Mutant(
        staged_reads, "_read", "read_moments(reader, vectors, coins, names)",
        "read_moments(reader, vectors, coins and type(coins).of(2), names)", SPLIT_LOOKS,
    ),
    "the one more look reads both halves": Mutant(
        staged_reads, "_read", "names)[group]", "names)[0] + read_moments(reader, vectors)[0]"
        " if group else read_moments(reader, vectors, coins, names)[0]", SPLIT_LOOKS, refused=True,
    ),
    "the one more look reads both halves, called one": Mutant(
        staged_reads, "_read", "return read_moments(reader, vectors, coins, names)[group]",
        "return __import__('dataclasses').replace(read_moments(reader, vectors)[0],"
        " group=names[group])", SPLIT_LOOKS,
    ),
    "the one more look reads the half that chose": Mutant(
        staged_reads, "_read", "names)[group]", "names)[0]", SPLIT_LOOKS, refused=True,
    ),
    "both halves' deltas in full with several rows a person": Mutant(
        plan, "plan_looks", "split and protection.contributions > 1", "False",
        cell("select", "fit='split'", "0.05", REPLACE, K3), refused=True,
    ),
    "a fresh look beside looks at the whole": Mutant(
        plan, "plan_looks", "looking = 1 - later", "looking = 1",
        cell("select", "fit='fresh'", REPLACE, K3), refused=True,
    ),
    "a fresh Gaussian look beside looks at the whole": Mutant(
        plan, "plan_looks", "looking = 1 - later", "looking = 1",
        cell("select", "fit='fresh'", "0.05", REPLACE, K3),
    ),
    "a count of rows beside ways at the whole eps": Mutant(
        select_route, "_either", "Budget(whole.eps * (1 - share), whole.delta)", "whole",
        COUNTED, refused=True,
    ),
    "a count of rows at five times its share": Mutant(
        estimates, "_counted", ".eps\n", ".eps * 5\n", COUNTED
    ),
    "a count of rows forgets contributions": Mutant(
        estimates, "_counted", "part.protection.contributions / eps", "1 / eps",
        cell("select", "method='auto'", ADD, K3),
    ),
    "both ways drawn from": Mutant(
        select_route.Route, "decided", "self.account.take(self.way.account)\n",
        "self.account.take(self.way.account)\n"
        "    self.account.take(self.otherwise.account)\n", COUNTED, refused=True,
    ),
    "a located look forgets contributions": Mutant(
        look_noise, "located_matrix_laplace", "share, neighbors, contributions)",
        "share, neighbors, 1)", LOOKS,
    ),
    "a look at the box forgets contributions": Mutant(
        look_noise, "box_matrix_laplace", "        contributions,\n", "        1,\n", LOOKS
    ),
    "a located look under the other relation": Mutant(
        look_noise, "located_matrix_laplace", "share, neighbors, contributions)",
        "share, 'add-remove', contributions)", LOOKS,
    ),
    "a Gaussian located look forgets contributions": Mutant(
        look_noise, "located_gaussian", "(weight, neighbors, contributions)",
        "(weight, neighbors, 1)", GAUSSIAN_LOOKS,
    ),
    "the tail forgets contributions": Mutant(
        tail_noise, "tail_l1", "rows * protection.contributions", "rows", LOOKS
    ),
    "the squares forget contributions": Mutant(
        tail_noise, "squares_reach", "Fraction(protection.contributions)", "Fraction(1)", LOOKS
    ),
    "the squares at the whole": Mutant(
        plan, "plan_looks", "whole * SQUARES", "whole", LOOKS, refused=True,
    ),
    "Gaussian squares at the whole": Mutant(
        plan, "plan_looks", "whole * SQUARES", "whole", GAUSSIAN_LOOKS,
    ),
    "the tail in units of a row of length one": Mutant(
        tail_noise, "tail_noise", "Fraction(full_weight, 2**20)", "Fraction(1, 2**20)", LOOKS
    ),
    "noise of half its scale": Mutant(
        vector_noise, "fit_noise", "VectorNoise(mechanism, scale, variance, eps, Fraction(0))",
        "VectorNoise(mechanism, scale / 2, variance, eps, Fraction(0))", cell("mean"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_no_fault_in_the_wiring_survives(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mutant = MUTANTS[name]
    mutant.plant(monkeypatch)
    with pytest.raises(AccountError if mutant.refused else AssertionError) as found:
        recorded(mutant.cell, monkeypatch, tmp_path)
    assert "no longer reads" not in str(found.value)
