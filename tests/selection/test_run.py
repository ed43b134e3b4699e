"""The stages between a checked call and a drawn model: groups of rows, tuning, penalties, draws."""

from fractions import Fraction
from math import log

import numpy as np
import pandas as pd
import pytest
from oracles.bounds import of_scores
from oracles.neighbours import DEFAULTS

from dpreg.moments import accumulate
from dpreg.privacy.mechanisms.choice import effective_t
from dpreg.request import SelectionRequest
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.selection.contest import Contest
from dpreg.selection.probabilities import useless_term_penalty
from dpreg.selection.run import prepare
from dpreg.selection.space import design_of, space_of
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

SCHEMA = Schema.from_any({"a": (-1, 1), "b": (-1, 1), "y": (-1, 1)})
ROWS = 400
PLAIN = {
    "formula": "y ~ a + b",
    "eps": 1,
    "keep": ("Intercept",),
    "penalty": "auto",
    "engine": "auto",
}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, ROWS))
    return pd.DataFrame({"a": a, "b": b, "y": 0.7 * a + rng.normal(0, 0.02, ROWS)})


class Call:
    """A call up to the draw, charged."""

    def __init__(self, **changes: object) -> None:
        asked = {**DEFAULTS, **PLAIN, **changes}
        self.request = SelectionRequest.of(asked)
        self.reader = Reader(as_source(table()))
        self.design = design_of(self.request, SCHEMA)
        self.account = self.request.account()
        self.preparation = prepare(self.request, self.design, self.reader, self.account)
        self.account.charge(None, "a test")
        self.space = space_of(self.request, self.design)

    def read(self) -> run.RowMoments:
        return run.read_rows(self.request, self.design, self.reader, self.account.rng)

    def tune(self, rows: run.RowMoments) -> run.Tuning:
        return run.tune(self.preparation, self.design, rows)

    def penalties(self, tuning: run.Tuning, contest: Contest) -> tuple[Fraction, Fraction]:
        return run.penalties(self.preparation, tuning, contest, self.space)


@pytest.mark.parametrize("fit", [None, "share"])
def test_without_halves_everything_reads_all_rows(fit: str | None) -> None:
    rows = Call(fit=fit).read()
    assert rows.everyone.rows == rows.selecting.rows == rows.n == ROWS
    assert rows.selecting.group == "all"
    assert rows.fitting == (None if fit is None else rows.everyone)
    assert rows.blocks == ()


def test_halves_are_disjoint_and_whole_and_called_by_their_names() -> None:
    rows = Call(fit="split").read()
    assert rows.fitting is not None
    assert rows.selecting + rows.fitting == rows.everyone
    assert 100 < rows.selecting.rows < 300
    assert (rows.selecting.group, rows.fitting.group) == ("half 1", "half 2")
    assert rows.everyone.rows == ROWS


@pytest.mark.parametrize("fit", [None, "split"])
def test_blocks_of_a_private_radius_cross_the_halves(fit: str | None) -> None:
    rows = Call(fit=fit, radius="private").read()
    assert len(rows.blocks) == 400 // (5 * 3)
    assert sum(rows.blocks, accumulate([], 4)).cells == rows.everyone.cells
    assert {block.group for block in rows.blocks} == {"all"}


def test_under_add_remove_the_number_of_rows_is_not_known() -> None:
    assert Call(neighbors="add-remove").read().n is None


def test_a_seed_tosses_the_same_coins() -> None:
    one, two = (Call(fit="split", unsafe_seed=3).read() for _ in range(2))
    assert one == two
    assert one != Call(fit="split", unsafe_seed=4).read()


@pytest.mark.parametrize(("fit", "halves"), [(None, 1), ("share", 1), ("split", 2)])
def test_the_rows_of_the_selection_are_those_that_it_reads(fit: str | None, halves: int) -> None:
    call = Call(fit=fit, sigma2="1/20", clip="0.5", radius="0.5")
    tuning = call.tune(call.read())
    assert tuning == run.Tuning(Fraction(1), Fraction(1, 5), ROWS // halves)


def test_a_noisy_count_stands_for_n_under_add_remove() -> None:
    call = Call(neighbors="add-remove", sigma2="1/20", fit="split", eps=10**4)
    tuning = call.tune(call.read())
    assert tuning.rows == pytest.approx(ROWS / 2, abs=3)
    assert call.preparation.parts["count"].state == "drawn from"


@pytest.mark.parametrize(
    ("neighbors", "rho"),
    [("replace-one", Fraction(1, 2)), ("add-remove", Fraction(181, 256))],  # blocks too small: 1
)
def test_radius_and_variance_are_bought_where_they_are_wanted(
    neighbors: str, rho: Fraction
) -> None:
    call = Call(radius="private", sigma2="private", fit=None, eps=10**6, neighbors=neighbors)
    tuning = call.tune(call.read())
    assert tuning.rho == rho
    assert tuning.sigma2 is not None
    assert tuning.rows == pytest.approx(ROWS, abs=1)
    assert call.preparation.parts["radius"].state == "drawn from"


@pytest.mark.parametrize("clip", ["1", "0.5"])
def test_a_number_is_charged_per_column_in_stored_units(clip: str) -> None:
    call = Call(penalty="0.01", clip=clip)
    paid = call.penalties(call.tune(call.read()), Contest(of_scores(100), Fraction(1, 8)))
    assert paid == (Fraction("0.01") / Fraction(clip) ** 2, 0)


def test_a_number_is_in_units_of_n_log_q_for_pcpl() -> None:
    call = Call(method="pcpl", penalty="3", clip="0.5", delta="1e-6")
    assert call.penalties(call.tune(call.read()), Contest(of_scores(100), Fraction(1))) == (3, 0)


def test_bic_charges_log_n_of_the_rows_that_select() -> None:
    call = Call(penalty="bic", sigma2="1/20", fit="split")
    phi, psi = call.penalties(call.tune(call.read()), Contest(of_scores(100), Fraction(1)))
    assert float(phi) == pytest.approx(log(ROWS / 2) / 20)
    assert psi == 0
    call = Call(penalty="auto", method="pcpl", delta="1e-6", fit=None)
    phi, _ = call.penalties(call.tune(call.read()), Contest(of_scores(100), Fraction(1)))
    assert float(phi) == pytest.approx(log(ROWS))


def test_auto_charges_each_unit_the_price_of_the_noise_at_the_eps_of_one_draw() -> None:
    call = Call(fit=None, draws=4, mechanism="permute-and-flip")
    contest = Contest(of_scores(1000), Fraction(1, 8))
    phi, psi = call.penalties(call.tune(call.read()), contest)
    rate = effective_t(Fraction(1, 4), 1000, "permute-and-flip")
    assert phi == 0
    assert psi == useless_term_penalty(2, Fraction(1, 10), rate, "permute-and-flip") / 8


@pytest.mark.parametrize("engine", ["enumerate", "tree"])
def test_a_model_is_drawn_for_each_part(engine: str) -> None:
    call = Call(fit=None, draws=3, eps=10**4, penalty=1, engine=engine)
    rows = call.read()
    made = run.select(call.preparation, call.tune(rows), call.space, rows.selecting)
    assert made.models == ((0,),) * 3
    assert all(part.state == "drawn from" for part in call.preparation.draws)
    assert (made.phi, made.psi) == (1, 0)


def test_pcpl_buys_its_bound_and_pcls_none() -> None:
    call = Call(method="pcpl", delta="1e-6", fit=None)
    rows = call.read()
    run.select(call.preparation, call.tune(rows), call.space, rows.selecting)
    assert call.preparation.parts["profile"].state == "drawn from"
    assert "profile" not in Call().preparation.parts
