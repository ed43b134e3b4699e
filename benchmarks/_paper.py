"""Draw the paper's figures and print the slides' tables: ``python -m benchmarks._paper FOLDER``.

Figures 1 and 2 are simulations. Figure 3 needs the prostate data and Figure 4's stand-in the King
County sales, in the folder that DPREG_DATA names; the simulated Bay Area table stands beside them.
The pictures of real rows are the curator's.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot

from benchmarks._figures import figure, mechanism_table
from dpreg import datasets
from dpreg.errors import DatasetError
from dpreg.options import PCLS
from dpreg.study.results import SelectionStudy
from dpreg.study.selection import selection_study
from dpreg.study.simulation import OBSERVED

PROSTATE = ("lcavol", "lweight", "age", "lcp", "lbph")
TOP = 5.583
"""The largest lpsa, the paper's r."""


def prostate() -> SelectionStudy:
    """Figure 3: every column mapped to [-1, 1] by its own extremes, lpsa as it is."""
    rows = datasets.load_prostate().data
    x = rows[list(PROSTATE)]
    x = 2 * (x - x.min()) / (x.max() - x.min()) - 1
    phi = (0.5, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40)
    return selection_study(
        "lpsa ~ " + " + ".join(PROSTATE),
        x.assign(lpsa=rows["lpsa"]),
        schema=dict.fromkeys(PROSTATE, (-1, 1)) | {"lpsa": (-TOP, TOP)},
        keep=(),
        eps=(1, 5, 10, 50),
        method=PCLS(
            center=False,
            radius=[round(R / TOP, 6) for R in (1, 2.5, 5.68, 10)],
            penalty=[round(p / TOP**2, 9) for p in phi],
            mechanism="laplace",
        ),
    )


def king_county() -> SelectionStudy:
    """Figure 4's stand-in, and the slides' tables (R x phi x eps)."""
    houses = datasets.load_kc_house()
    return selection_study(
        houses.formula,
        houses.data,
        schema=houses.schema,
        eps=("0.5", 1, 5),
        progress=True,
        method=PCLS(
            radius=("0.25", "0.5", 1, 3), penalty=(4, 8, 16, 32, 64, 128), mechanism="laplace"
        ),
    )


def bay_area() -> SelectionStudy:
    """The same of simulated sales, in the slides' size: 235,760 rows, 8,192 models."""
    area = datasets.make_bay_area()
    return selection_study(
        area.formula,
        area.data,
        schema=area.schema,
        units="column",
        eps=(1, 5),
        progress=True,
        method=PCLS(radius=("0.25", "0.75", 1, "2.5"), penalty=(4, 8, 16, 32)),
    )


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)

    def save(name: str, picture: pyplot.Figure) -> None:
        picture.savefig(folder / f"{name}.png", dpi=110)
        pyplot.close(picture)

    for number in (1, 2):
        study = figure(number, bounds=(OBSERVED, 6.0), progress=True)
        save(f"figure{number}", study.plot())
        save(f"figure{number}_public", study.plot(bound=6.0))
        print(study.price_of_the_leak.round(3).to_string(), "\n")
    for bound in (OBSERVED, 6.0):
        print(f"r = {bound}\n{mechanism_table(bound=bound).round(3).to_string()}\n")
    for name, make in (("prostate", prostate), ("king", king_county), ("bay", bay_area)):
        try:
            study = make()
        except DatasetError as err:
            print(f"{name}: {err}")
            continue
        save(
            f"{name}_agreement", study.plot(reference="bic" if name == "prostate" else "same score")
        )
        save(f"{name}_rsquared", study.plot("relative_rsquared"))
        save(f"{name}_frequencies", study.plot("frequencies"))
        save(f"{name}_models", study.plot("probabilities", setting=len(study.settings) - 1))
        print(study.privacy)
        fit = study.relative_rsquared["relative"].droplevel("mechanism")
        print(fit.unstack(["eps", "penalty"]).round(3).to_string())
        top = study.frequencies.droplevel("mechanism", axis=1)
        eps, radius = top.columns[-1][:2]
        print(f"eps {eps}, R {radius}\n{top[eps][radius].T.round(2).to_string()}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
