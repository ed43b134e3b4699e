"""The whole of `dp_select`, rows to released model, over an ordinary fit of the full model.

235,760 simulated house sales, thirteen columns, selection by column: 8,192 models, each scored
under its l1 constraint. The peer fits one model, the full one, to the same frame.

    python -m benchmarks.select
"""

import statsmodels.formula.api as smf

import dpreg
from benchmarks._harness import Comparison, compare, show
from dpreg import datasets

# The unconstrained fits' l1 norms run from 0.2 to 3.8 in scaled units, with a median of 1.7: a
# radius of 4 binds for no model, the default radius of 1 for nine in ten.
CASES = (("radius 4, binds for none", 4, 0.35), ("radius 1, binds for most", 1, 0.6))


def run(rounds: int = 5) -> list[Comparison]:
    bay = datasets.make_bay_area(235_760)

    def select(radius: int) -> int:
        result = dpreg.dp_select(
            bay.formula,
            bay.data,
            eps=1,
            schema=bay.schema,
            units="column",
            fit=None,
            method=dpreg.PCLS(radius=radius, engine="enumerate"),
        )
        return int(result.n_models)

    assert select(1) >= 8192
    return [
        compare(
            name,
            lambda radius=radius: select(radius),  # type: ignore[misc]
            "ols(...).fit()",
            lambda: smf.ols(bay.formula, bay.data).fit(),
            rounds=rounds,
            goal=goal,
        )
        for name, radius, goal in CASES
    ]


if __name__ == "__main__":
    show(run())
