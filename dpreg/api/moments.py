"""Ways of `dp_ols` beside looks: one release of all moments, and a perturbed objective.

The moments are released by gram, or by the published SSP and AdaSSP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpreg.api.context import Facts, Opened, Way, exclusive_groups, released
from dpreg.api.looks import can_hold
from dpreg.arrays import Floats, to_grid
from dpreg.columns import ColumnType
from dpreg.errors import ArgumentError
from dpreg.estimation.few import PASSES, few_fit, open_few
from dpreg.estimation.gram import NoisyGram, planned_noise, release_gram
from dpreg.estimation.inference import BELIEVED, GramFit, fit_gram, noise_norm
from dpreg.estimation.levels import fit_levels, hidden_levels
from dpreg.estimation.perturbed import MOST_CELLS, constants_of, release_sums, to_ball
from dpreg.estimation.scaling import RowScaling, row_scaling
from dpreg.estimation.tuning import TUNING
from dpreg.formula.design import Design
from dpreg.grouped import CodedRows, Layout
from dpreg.looks.model import LinearModel, columns_of
from dpreg.moments import Moments, read_moments
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.noise import DRAWN
from dpreg.privacy.proofs import layout
from dpreg.results.notes import worded
from dpreg.results.regression import RegressionResults
from dpreg.running import warn
from dpreg.sources import Chunk

_MANY_LEVELS: Final = 20


def joint_fit(
    design: Design,
    columns: Sequence[int],
    moments: Moments,
    rows: int | None,
    part: Part,
    noise: str | None = None,
) -> dict[str, Any]:
    """Release the moments of one model once, and return what is fitted from what was released.

    Parameters
    ----------
    design : Design
    columns : sequence of int
        The model's z columns.
    moments : Moments
        Exact moments of the rows that may be read for this.
    rows : int or None
        Of the table, where that is public.
    part : Part
        What the release may cost.
    noise : {"gaussian", "matrix-laplace", "laplace"}, optional
        None takes the one with the least expected error, by a public rule.
    """
    chosen = tuple(columns)
    exclusive = exclusive_groups(design, chosen)
    wide = max(exclusive, key=len, default=())
    if len(wide) >= TUNING.levels:
        noisy, fit, weak = _by_levels(design, chosen, exclusive, moments, rows, part, noise)
    else:
        noisy = release_gram(moments, chosen, exclusive=exclusive, part=part, noise=noise)
        fit, weak = fit_gram(noisy, rows=rows), _weak(design, chosen, noisy)
    fit = fit.in_user_units(
        *design.factors_to_user_units(chosen), response_width=design.response.width
    )
    sampling, privacy = fit.errors
    return {
        "coefficients": fit.beta,
        "covariance": fit.cov,
        "sampling_errors": sampling,
        "privacy_errors": privacy,
        "error_variance": fit.sigma2,
        "explained": fit.rsquared,
        "complete_rows": fit.nobs,
        "error_df": fit.df_resid if rows is not None else None,
        "method": "gram",
        "noise": noisy.mechanism,
        "ridged": fit.ridged,
        "ridge": fit.ridge if fit.ridged else None,
        "interval_method": "noise-aware" if fit.draws is None else "bootstrap",
        "interval_draws": fit.draws,
        "weak": weak if fit.ridged else {},
    }


def _by_levels(
    design: Design,
    columns: tuple[int, ...],
    exclusive: Sequence[tuple[int, ...]],
    moments: Moments,
    rows: int | None,
    part: Part,
    noise: str | None,
) -> tuple[NoisyGram, GramFit, dict[str, str]]:
    """Fit a model whose widest factor is solved for level by level; name the rare levels.

    With an intercept the level that the coding leaves out is released too, as the last column.
    """
    wide = max(exclusive, key=len)
    levels, released_columns = [columns.index(j) for j in wide], columns
    rest_of = wide if 0 in columns else ()
    if rest_of:
        rest = len(moments.cells) - 1
        exclusive = [(*group, rest) if group == wide else group for group in exclusive]
        released_columns = (*columns, rest)
        levels.append(len(columns))
    noisy = release_gram(
        moments,
        released_columns,
        exclusive=exclusive,
        part=part,
        noise=noise,
        rest_of=rest_of,
    )
    hidden = [place for place in hidden_levels(noisy, levels) if place < len(columns)]
    weak = {design.columns[columns[place]].name: "rare level" for place in hidden}
    return noisy, fit_levels(noisy, levels, rows=rows), weak


def _weak(design: Design, columns: Sequence[int], noisy: NoisyGram) -> dict[str, str]:
    """Name the columns that made a fit ridged, from released numbers, and say why.

    These are the columns whose released sum of squares about the mean is below the size at which
    an eigenvalue is believed; where all are, the noise is large for every column, and none is
    named.
    """
    squares = np.diag(noisy.cells)[:-1].copy()
    if noisy.triangle.intercept:
        squares -= noisy.cells[0, :-1] ** 2 / max(noisy.count, 1.0)
        squares[0] = np.inf
    hidden = np.flatnonzero(squares < BELIEVED * noise_norm(noisy.noise_sd[:-1, :-1] ** 2))
    if len(hidden) >= len(columns) - noisy.triangle.intercept:
        return {}
    grouped = {j for group in exclusive_groups(design, columns) for j in group}
    named = [columns[int(place)] for place in hidden]
    return {
        design.columns[j].name: "rare level" if j in grouped else "hidden direction" for j in named
    }


@dataclass(frozen=True, slots=True)
class UnitBallRows:
    """A design's rows, brought into the unit ball; make it with `unit_ball_rows`.

    The public scaling acts on the stored columns, which lie in [-1, 1]; the constant column is the
    scaling's own. A row vector is (1, x, y), as `dpreg.estimation.perturbed.to_ball` makes it.
    """

    design: Design
    columns: tuple[int, ...]
    scaling: RowScaling

    @property
    def types(self) -> Mapping[str, ColumnType]:
        """What is read, and how."""
        return self.design.types

    @property
    def size(self) -> int:
        """D: the constant that counts rows, the scaled columns and the response."""
        return len(self.columns) + 2

    def block(self, chunk: Chunk) -> Floats:
        """Make the vectors of some rows."""
        rows = self.design.block(chunk)
        rows[rows[:, 0] == 0.0] = np.nan  # an incomplete row is excluded, constant included
        slopes = [j for j in self.columns if j != 0]
        return to_ball(*self.scaling.apply(rows[:, slopes], rows[:, -1]))

    @property
    def layout(self) -> Layout:
        """Where the moments lie: no column is given by a code."""
        return Layout(self.size)

    def coded(self, chunk: Chunk) -> CodedRows:
        """Make the same vectors."""
        return CodedRows(to_grid(self.block(chunk)), ())


def unit_ball_rows(design: Design, columns: Sequence[int], scaling: str) -> UnitBallRows:
    """Settle the public scaling of a model's rows."""
    unit = np.ones(sum(j != 0 for j in columns))
    scaled = row_scaling(
        scaling,
        bounds=np.column_stack([-unit, unit]),
        mean=0 * unit,
        sd=unit,
        x_max=float(np.sqrt(max(len(unit), 1))),
        intercept=0 in columns,
    )
    return UnitBallRows(design, tuple(columns), scaled)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByGram(Way):
    """One release of all moments: a `dpreg.api.context.Way`.

    Attributes
    ----------
    noise : str or None
    """

    noise: str | None

    def open(self, account: Account) -> Opened:
        """Open the lines of the bounds and of the moments: a pure noise needs no delta."""
        cost = self.context.cost
        spent = cost if self.noise in (None, "gaussian") else Budget(cost.eps)
        return self.context.bounds(account), account.line("coefficients", "gram release", spent)

    def announce(self, rows: int | None) -> None:
        """Warn, before the charge, of factors with too many levels for the rows and the budget.

        Too many are twenty or more that have, on average, fewer rows each than twice the standard
        deviation of the noise in a level's count: a public rule. `rows` is how many there are, or
        about how many, where that is public; without it there is no warning.
        """
        design, request = self.context.trial, self.context.request
        factors = [t for t in design.terms if t.exclusive and len(t.columns) >= _MANY_LEVELS]
        if rows is None or not factors:
            return
        chosen = columns_of(LinearModel(), design)
        triangle = layout(chosen, exclusive_groups(design, chosen))
        planned = planned_noise(triangle, self.context.cost, request.protection, self.noise)
        sds = dict(zip(triangle.cells, planned, strict=True))
        for term in factors:
            place = chosen.index(term.columns[0])
            sd, levels = sds[place, place], len(term.columns) + triangle.intercept
            if rows < 2 * sd * levels:
                warn(
                    f"{term.name} has {levels:,} levels for {rows:,} rows, about "
                    f"{rows / levels:,.0f} each, and the noise in a level's count has a standard "
                    f"deviation of {sd:,.0f}: its coefficients will say little. Merge levels, or "
                    "raise eps."
                )

    def answer(self, opened: Opened, account: Account, notes: tuple[str, ...]) -> RegressionResults:
        """Read the rows once, release their moments and fit."""
        context, design = self.context, self.context.design(opened[0])
        columns = columns_of(LinearModel(), design)
        (moments,) = read_moments(context.reader, design)
        rows = moments.rows if context.request.protection.n_is_public else None
        fit = joint_fit(design, columns, moments, rows, opened[1], self.noise)
        facts = context.facts(context.reader, design, account, notes)
        return released(RegressionResults, design, columns, facts, **fit)

    def noted(self, reason: str) -> tuple[str, ...]:
        """Say why looks were not taken."""
        return (worded("way", method="gram", reason=reason.rstrip(".")),)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByPublished(Way):
    """Coefficients alone, by perturbed sufficient statistics: a `dpreg.api.context.Way`.

    Attributes
    ----------
    method : {"ssp", "adassp"}
    noise : str
        Whose constants it takes.
    scaling : str
        As for `unit_ball_rows`.
    """

    method: str
    noise: str
    scaling: str

    def refuses(self, rows: int | None, has: str = "has") -> str:
        """Refuse constants whose release, as a whole, is not what would be charged for it."""
        cost, protection = self.context.cost, self.context.request.protection
        privacy = constants_of(self.method, self.noise, cost, protection)
        if not privacy.holds:
            raise ArgumentError(
                f'noise="{self.noise}" gives eps={privacy.whole_eps:.4g} at '
                f'delta={float(cost.delta):g} here, more than is charged: use noise="analytic", '
                "or a larger eps."
            )
        if (rows or 0) * len(self.context.trial.columns) > MOST_CELLS:
            raise ArgumentError(
                f'method="{self.method}" is proved for tables of up to 2**44 cells, '
                "and this one has more: leave method out."
            )
        return ""

    def open(self, account: Account) -> Opened:
        """Open the lines of the bounds and of the statistics."""
        line = account.line("coefficients", f"{self.method} release", self.context.cost)
        return self.context.bounds(account), line

    def answer(self, opened: Opened, account: Account, notes: tuple[str, ...]) -> RegressionResults:
        """Read the rows once, and fit what was released, in the user's units if it can be."""
        context, design = self.context, self.context.design(opened[0])
        columns = columns_of(LinearModel(), design)
        rows = unit_ball_rows(design, columns, self.scaling)
        (moments,) = read_moments(context.reader, rows)
        fit = release_sums(moments, opened[1], method=self.method, noise=self.noise)
        params, told = fit.params, [worded("coefficients-alone", method=self.method)]
        if rows.scaling.affine:
            constant_first = rows.scaling.unstandardise(params)
            stored = constant_first if 0 in columns else constant_first[1:]
            transform, shift = design.to_user_units(columns)
            params = transform @ stored + shift
        else:
            told.append(worded("rows-of-norm-one", kind=self.scaling))
        facts = context.facts(context.reader, design, account, (*notes, *told))
        return _coefficients_alone(
            design,
            columns,
            facts,
            column_widths=None,
            coefficients=params,
            error_df=None if facts["nobs"] is None else float(facts["nobs"] - len(columns)),
            method=self.method,
            noise=self.noise,
            scaling=self.scaling,
        )


def _coefficients_alone(
    design: Design, columns: Sequence[int], facts: Facts, **told: Any
) -> RegressionResults:
    """Make the result of a fit without standard errors."""
    unknown = np.full(len(columns), np.nan)
    return released(
        RegressionResults,
        design,
        columns,
        facts,
        covariance=np.full((len(columns), len(columns)), np.nan),
        sampling_errors=unknown,
        privacy_errors=unknown,
        **told,
    )


_MOST_CELLS: Final = 1 << 26
"""Cells of the rows that are held at once."""
_LEAST_EPS: Final = Fraction(1, 2**30)
"""Of a row: with less, noise that fits in no float would be asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByObjective(Way):
    """Coefficients alone where rows are few, by a perturbed objective: a way of `dp_ols`."""

    def refuses(self, rows: int | None, has: str = "has") -> str:
        """Refuse what cannot be fitted so, from public facts alone and before the charge."""
        context, reader, design = self.context, self.context.reader, self.context.trial
        if not design.has_intercept:
            raise _refused(
                "needs an intercept, as it measures the response from its mean",
                'Leave out "- 1" or "+ 0", or use method="gram"',
            )
        if reader.persons is not None:
            raise _refused("takes no person", 'Use method="auto"')
        if not can_hold(reader):
            raise _refused(
                "holds the rows in this process, which does not read these",
                'Bring the columns here (.compute(), .toPandas()), or use method="auto"',
            )
        if context.cost.eps < _LEAST_EPS * context.request.protection.contributions:
            raise _refused("needs an eps of at least 2**-30 for each row of a person", "Raise eps")
        reader.require(context.passes + PASSES)
        if (rows or 0) * len(design.columns) > _MOST_CELLS:
            raise _refused(
                f"holds up to {_MOST_CELLS:,} cells, and this table has more",
                'Use method="auto", which does better with so many rows',
            )
        return ""

    def open(self, account: Account) -> Opened:
        """Open the lines of the bounds and of the fit."""
        return self.context.bounds(account), open_few(account, self.context.cost.eps)

    def answer(self, opened: Opened, account: Account, notes: tuple[str, ...]) -> RegressionResults:
        """Read the rows, release coefficients and write them in the user's units."""
        context = self.context
        design = context.design(opened[0])
        exclusive = exclusive_groups(design, range(len(design.columns)))
        params, count = few_fit(context.reader, design, exclusive, opened[1])
        facts = context.facts(context.reader, design, account, notes)
        columns = columns_of(LinearModel(), design)
        to_user, shift = design.to_user_units(columns)
        told = [worded("no-intervals"), *[worded("pure")] * (facts["delta"] != 0)]
        return _coefficients_alone(
            design,
            columns,
            facts,
            coefficients=to_user @ params[list(columns)] + shift,
            complete_rows=count,
            error_df=None if facts["nobs"] is None else max(count - len(columns), 1.0),
            method="objective",
            noise=DRAWN,
            notes=(*facts["notes"], *told),
        )


def _refused(why: str, mend: str) -> ArgumentError:
    return ArgumentError(f'method="objective" {why}. {mend}.')
