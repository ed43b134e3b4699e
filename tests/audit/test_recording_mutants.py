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

from dpreg.api import aggregate as blockwise
from dpreg.api import classic as quantile
from dpreg.api import context
from dpreg.estimation import blocks as aggregate
from dpreg.estimation import gram, histogram, perturbed, sums
from dpreg.estimation import histogram as quantile_choice
from dpreg.estimation import sums as coding
from dpreg.formula import bounds
from dpreg.looks import loop, plan, table
from dpreg.looks import minimum as held
from dpreg.privacy import account, look_noise, ranks
from dpreg.privacy import noise as scale_noise
from dpreg.privacy import noise as vector_noise
from dpreg.privacy import proofs as sensitivity
from dpreg.privacy import ranks as quantiles
from dpreg.privacy.mechanisms import choice
from dpreg.privacy.protection import AccountError
from dpreg.selection import contest, run
from dpreg.selection import contest as profile
from dpreg.selection import draws as engine
from dpreg.selection import draws as estimates
from dpreg.selection import run as preparation

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
        told = honest.fget if isinstance(honest, property) else honest
        source = textwrap.dedent(inspect.getsource(told))
        assert self.old in source, f"{self.name} no longer reads {self.old!r}"
        module = sys.modules[told.__module__]
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
                    elif isinstance(value, dict) and any(v is honest for v in value.values()):
                        patch.setattr(
                            other, key, {k: changed if v is honest else v for k, v in value.items()}
                        )


def cell(call: str, *parts: str) -> str:
    """Return the first cell of this call whose options hold all of these."""
    (name, *_) = [n for n in MATRIX if n.startswith(f"{call}(") and all(p in n for p in parts)]
    return name


K3, REPLACE, ADD = "contributions=3", "'replace-one'", "'add-remove'"
PRIVATE = cell("select", "sigma2='private'", REPLACE, K3)
LOOKS = cell("select", "method='adaptive'", REPLACE, K3)
GAUSSIAN_LOOKS = cell("select", "method='adaptive'", REPLACE, K3, "delta='1e-6'")
COUNTED = cell("select", "method='auto'", ADD)
FAMILY = ("family='binomial'", REPLACE, K3)
ONE = "type(part.protection)(part.protection.neighbors, 1)"
MUTANTS = {
    "sigma2 counts at the whole eps": Mutant(
        estimates, "private_sigma2", "(_OF_SQUARES, 1 - _OF_SQUARES)", "(Fraction(1),) * 2",
        PRIVATE, refused=True,
    ),
    "the count of sigma2 at five times its share": Mutant(
        estimates, "_noise", ".eps\n", ".eps * 5\n", PRIVATE
    ),
    "delta spent twice with several rows a person": Mutant(
        preparation, "_costs", 'request.fit == "split" and one_row', 'request.fit == "split"',
        cell("select", "draws=40", K3), refused=True,
    ),
    "every column's bounds at the whole eps": Mutant(
        bounds, "open_bounds", " / max(len(names), 1)", "",
        cell("select", "schema='bare'"), refused=True,
    ),
    "a choice at five times its share": Mutant(
        choice, "draw_index", ".eps\n", ".eps * 5\n", cell("ols", "schema='bare'"),
    ),
    "bounds forget contributions": Mutant(
        quantiles, "search_ranges", "rows * protection.contributions", "rows",
        cell("ols", "schema='bare'", K3),
    ),
    "bounds for one row a person": Mutant(
        quantiles.BoundsSearch, "__init__", "search_ranges(part.protection)",
        f"search_ranges({ONE})", cell("ols", "schema='bare'", K3), refused=True,
    ),
    "coefficients at one row a person": Mutant(
        gram, "release_gram", "part.cost, part.protection", f"part.cost, {ONE}", cell("ols", K3),
        refused=True,
    ),
    "coefficients of a selection at one row a person": Mutant(
        gram, "release_gram", "part.cost, part.protection", f"part.cost, {ONE}",
        cell("select", K3), refused=True,
    ),
    "the radius forgets contributions": Mutant(
        estimates, "norm_changes", "protection.contributions", "1", PRIVATE
    ),
    "the radius by a bound for block values": Mutant(
        estimates, "private_radius", "changes.then(fixed_range(changes.after, 1))",
        "fixed_range(changes.after, 1)", cell("select", "radius='private'", ADD), refused=True,
    ),
    "a range that was halved": Mutant(
        choice, "draw_index", "bound.width", "bound.width // 2", cell("select")
    ),
    "each of K draws at the eps of all": Mutant(
        account.Account, "draws", "Budget(plan.eps_each)", "plan.cost", cell("select", "draws=3")
    ),
    "each of K draws of a tree at the eps of all": Mutant(
        account.Account, "draws", "Budget(plan.eps_each)", "plan.cost",
        cell("select", "engine='tree', draws=4"), refused=True,
    ),
    "all draws from the first one's part": Mutant(
        run, "select", "for part in prepared.draws",
        "for part in prepared.draws[:1] * 3", cell("select", "draws=3"), refused=True,
    ),
    "the noisy count forgets contributions": Mutant(
        estimates, "noisy_rows", "k = part.protection.contributions", "k = 1",
        cell("select", "sigma2='1/20'", ADD, K3),
    ),
    "PCPL's bound forgets contributions": Mutant(
        profile, "residual_change", "protection.contributions", "1",
        cell("select", "method='pcpl'", K3),
    ),
    "PCPL's shift forgets contributions": Mutant(
        estimates, "lower_bound", "part.protection", ONE, cell("select", "method='pcpl'", K3),
    ),
    "the tree at twice the rate": Mutant(
        engine.Searched, "__init__", "rate = effective_t(", "rate = 2 * effective_t(",
        cell("select", "engine='tree'"), refused=True,
    ),
    "the tree at half the range": Mutant(
        engine.Searched, "draw", "self._contest.score_range\n",
        "type(self._contest.score_range)(width=self._contest.score_range.width // 2, "
        "protection=part.protection)\n",
        cell("select", "engine='tree'"), refused=True,
    ),
    "the list at twice the rate": Mutant(
        choice, "draw_index", "eps=eps", "eps=2 * eps", cell("select")
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
        contest, "least_squares_contest", "score_range(rho, protection)",
        "score_range(rho, type(protection)('add-remove'))", cell("select", REPLACE), refused=True,
    ),
    "scores forget contributions": Mutant(
        contest, "least_squares_contest", "score_range(rho, protection)",
        "score_range(rho, type(protection)(protection.neighbors))", cell("select", K3),
        refused=True,
    ),
    "the range of scores forgets contributions": Mutant(
        sensitivity, "score_range", "protection.contributions * one", "one", cell("select", K3)
    ),
    "PCPL's scores under the other relation": Mutant(
        contest, "profile_contest", "residual_change(rho, protection)",
        "residual_change(rho, type(protection)('add-remove'))",
        cell("select", "method='pcpl'", REPLACE), refused=True,
    ),
    "PCPL's range under the other relation": Mutant(
        profile, "profile_range", "moved = 2 * d2 if replaced", "moved = d2 + 2 if replaced",
        cell("select", "method='pcpl'", REPLACE),
    ),
    "Gaussian moments under the other relation": Mutant(
        gram, "_gaussian_plan", "(triangle, protection, weight)",
        "(triangle, type(protection)('add-remove', protection.contributions), weight)",
        cell("ols", REPLACE, "'gaussian'"),
    ),
    "matrix-Laplace moments under the other relation": Mutant(
        gram, "_matrix_laplace_plan", "        protection,\n",
        "        type(protection)('add-remove', protection.contributions),\n",
        cell("ols", "unsafe_seed=3"),
    ),
    "Laplace moments forget contributions": Mutant(
        gram, "_laplace_plan", "(triangle, protection)",
        "(triangle, type(protection)(protection.neighbors))", cell("ols", "'laplace'", K3),
    ),
    "AdaSSP forgets contributions": Mutant(
        perturbed, "constants_of", "protection.neighbors, protection.contributions",
        "protection.neighbors, 1",
        cell("ols", "'adassp'", K3),
    ),
    "SSP under the other relation": Mutant(
        perturbed, "constants_of", "protection.neighbors,", "'add-remove',",
        cell("ols", "'ssp'", REPLACE),
    ),
    "sums of groups at half their sensitivity": Mutant(
        coding.Coding, "sensitivity", "2 * first, 2 * second", "first, second",
        cell("mean", "by='g')", REPLACE),
    ),
    "sums forget contributions": Mutant(
        coding.Coding, "sensitivity", "k, d, w = protection.contributions", "k, d, w = 1",
        cell("mean", K3),
    ),
    "sums fitted to one row a person": Mutant(
        sums, "plan", "coding.sensitivity(protection, grouped)",
        "coding.sensitivity(type(protection)(protection.neighbors), grouped)", cell("mean", K3),
        refused=True,
    ),
    "sums of groups fitted as if no row moved": Mutant(
        sums, "plan", "coding.sensitivity(protection, grouped)",
        "coding.sensitivity(protection, False)",
        cell("mean", "by='g'", REPLACE, "'gaussian'"), refused=True,
    ),
    "sums under the other relation": Mutant(
        sums, "plan", "coding.sensitivity(protection, grouped)",
        "coding.sensitivity(type(protection)('add-remove'), grouped)",
        cell("suffstats", REPLACE, "'gaussian'"), refused=True,
    ),
    "counts under the other relation": Mutant(
        histogram, "count_noise", "count_change(protection,",
        "count_change(type(protection)('add-remove'),", cell("histogram", REPLACE), refused=True,
    ),
    "counts forget contributions": Mutant(
        histogram, "count_change", "k, moved = protection.contributions", "k, moved = 1",
        cell("histogram", ADD, K3),
    ),
    "quantiles forget that rows move between groups": Mutant(
        quantile_choice, "private_quantile", "grouped=grouped", "grouped=False",
        cell("quantile", "by='g'", REPLACE), refused=True,
    ),
    "ranks of groups move as those of one": Mutant(
        ranks, "rank_range", "2 * one if grouped", "2 * RANK_UNIT if grouped",
        cell("quantile", "by='g'", REPLACE),
    ),
    "numbers of values of groups as of one": Mutant(
        quantile, "_opened", "single=not grouped", "single=True",
        cell("quantile", "by='g'", REPLACE), refused=True,
    ),
    "block values forget that rows move between groups": Mutant(
        blockwise.Aggregate, "steps", "grouped=table.by is not None", "grouped=False",
        cell("aggregate", "by='g'", REPLACE),
    ),
    "block values of a person as of one group": Mutant(
        aggregate, "block_changes", "min(moved, groups)", "1",
        cell("aggregate", "person", "by='g'"),
    ),
    "the number of rows for blocks forgets contributions": Mutant(
        histogram, "count_change", "k, moved = protection.contributions", "k, moved = 1",
        cell("aggregate", "person", REPLACE),
    ),
    "the number of rows for blocks as if in groups": Mutant(
        blockwise.Aggregate, "steps", "single=True", "single=False",
        cell("aggregate", "person", REPLACE),
    ),
    "block values forget contributions": Mutant(
        aggregate, "block_changes", "protection.contributions *", "1 *",
        cell("aggregate", "winsorized", K3),
    ),
    "a window by a bound for one block value": Mutant(
        aggregate, "window", "fixed_range(changes.after)",
        "fixed_range(type(changes.after)('replace-one'))",
        cell("aggregate", "winsorized", K3), refused=True,
    ),
    "averages by a bound for block values": Mutant(
        aggregate, "plan_averages", "changes.then(fitted.bound)", "fitted.bound",
        cell("aggregate", ADD, K3), refused=True,
    ),
    "noise fitted to another cost": Mutant(
        vector_noise, "fit_noise", "scale, variance, Budget(cost.eps), bound)",
        "scale / 2, variance, Budget(2 * cost.eps), bound)", cell("mean"),
        refused=True,
    ),
    "a look drawn twice": Mutant(
        table.Taken, "locating", "self._drawn(noise, share)",
        "self._drawn(noise, share) and self._drawn(noise, share)", LOOKS, refused=True,
    ),
    "every look at the whole eps": Mutant(
        plan.Opened, "part", "self.plan.strength * share", "self.plan.strength", LOOKS,
        refused=True,
    ),
    "a look's noise for more than its share": Mutant(
        plan.LookPlan, "locating_noise", "self.strength * share", "self.strength",
        GAUSSIAN_LOOKS, refused=True,
    ),
    "a pure look's noise for more than its share": Mutant(
        plan.LookPlan, "locating_noise", "self.strength * share", "self.strength", LOOKS,
        refused=True,
    ),
    "looks that choose take what is kept for later ones": Mutant(
        loop, "look", "1 - plan.later - sum(shares)", "1 - sum(shares)",
        cell("select", "fit='fresh'", REPLACE, K3), refused=True,
    ),
    "Gaussian looks that choose take what is kept for later ones": Mutant(
        loop, "look", "1 - plan.later - sum(shares)", "1 - sum(shares)",
        cell("select", "fit='fresh'", "0.05", REPLACE, K3), refused=True,
    ),
    "later looks at all that there is": Mutant(
        loop, "look_at_chosen", "seen.plan.later, seen.family", "Fraction(1), seen.family",
        cell("select", "fit='fresh'", REPLACE, K3), refused=True,
    ),
    "later Gaussian looks at all that there is": Mutant(
        loop, "look_at_chosen", "seen.plan.later, seen.family", "Fraction(1), seen.family",
        cell("select", "fit='fresh'", "0.05", REPLACE, K3), refused=True,
    ),
    "the last look of persons takes what is kept for later ones": Mutant(
        table.Taken, "fitting", "last and not self.plan.later", "last",
        cell("select", "family='binomial'", "person", REPLACE), refused=True,
    ),
    "located looks of persons for one row": Mutant(
        plan.LookPlan, "_located", "own, self.protection)",
        "own, replace(self.protection, person=None))",
        cell("select", "method='adaptive'", "person", REPLACE),
    ),
    "looks beside bounds at the whole eps": Mutant(
        context.Context, "of", "(1 - counted) * (1 - share)", "(1 - counted)",
        cell("select", "method='adaptive'", "schema='bare'"), refused=True,
    ),
    "a count of rows beside ways at the whole eps": Mutant(
        context, "answered", "Budget(whole.eps * (1 - count), whole.delta)", "whole",
        COUNTED, refused=True,
    ),
    "a count of rows at five times its share": Mutant(
        estimates, "_noise", ".eps\n", ".eps * 5\n", COUNTED
    ),
    "a count of rows forgets contributions": Mutant(
        estimates, "noisy_rows", "k = part.protection.contributions", "k = 1",
        cell("select", "method='auto'", ADD, K3),
    ),
    "both ways drawn from": Mutant(
context, "answered", "account.take(accounts[place])\n",
        "account.take(accounts[place])\n"
        "    account.take(accounts[1 - place])\n", COUNTED, refused=True,
    ),
    "a located look forgets contributions": Mutant(
        look_noise, "located_matrix_laplace", "share, protection.sums)",
        "share, Protection(protection.neighbors))", LOOKS,
    ),
    "a look at the box forgets contributions": Mutant(
        look_noise, "box_matrix_laplace", "share, protection,",
        "share, Protection(protection.neighbors),", LOOKS,
    ),
    "a located look under the other relation": Mutant(
        look_noise, "located_matrix_laplace", "share, protection.sums)",
        "share, Protection('add-remove', protection.contributions))", LOOKS,
    ),
    "a Gaussian located look forgets contributions": Mutant(
        look_noise, "located_gaussian", "(weight, protection.sums)",
        "(weight, Protection(protection.neighbors))", GAUSSIAN_LOOKS,
    ),
    "looks at a family beside bounds at the whole eps": Mutant(
        context.Context, "of", "(1 - counted) * (1 - share)", "(1 - counted)",
        cell("select", "family='poisson'", REPLACE, K3), refused=True,
    ),
    "the four sums forget contributions": Mutant(
        scale_noise, "scales_noise", "* p * protection.contributions", "* p",
        cell("ols", "'objective'", REPLACE, K3),
    ),
    "the spread of residuals forgets contributions": Mutant(
        scale_noise, "part_noise", "protection.contributions * PARTS", "PARTS",
        cell("ols", "'objective'", REPLACE, K3),
    ),
    "columns' sums for the other relation": Mutant(
        scale_noise, "means_noise", "protection.changes * ", "",
        cell("ols", "'objective'", REPLACE, K3),
    ),
    "a minimum's noise for one row a person": Mutant(
        held, "released_minimum", "part.protection,", f"{ONE},",
        cell("ols", "'objective'", REPLACE, K3), refused=True,
    ),
    "noise of half its scale": Mutant(
        vector_noise, "fit_noise", "scale, variance, Budget(cost.eps), bound)",
        "scale / 2, variance, Budget(cost.eps), bound)", cell("mean"),
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
