"""Data that ship with a dependency.

Tested in `tests/datasets/test_datasets.py`.
"""

from __future__ import annotations

import pandas as pd

from dpreg.datasets.dataset import Dataset
from dpreg.schema import Schema

__all__ = ["load_randhie"]


def load_randhie() -> Dataset:
    """Load the RAND Health Insurance Experiment: visits to a doctor and the plan of the insured.

    Returns
    -------
    Dataset
        20,190 person-years. ``mdvis`` (outpatient visits in the year) is the response of the
        suggested formula, on nine regressors.

    Notes
    -----
    The bounds follow from the codebook that statsmodels prints and from the experiment's design.
    ``lncoins`` is the log of one plus a coinsurance rate of 0 to 100 percent. The experiment capped
    yearly spending at 1,000 dollars and its lowest positive rate was 25 percent, so ``fmde`` ends
    at ``log(1000 / 0.25) = 8.294``; the yearly participation payments behind ``lpi`` stayed below
    ``exp(8)``, about 3,000 dollars. ``disea`` is an index of chronic diseases on a scale of 0
    to 60. ``physlm`` is a share between 0 and 1, since missing answers were filled in by rates.

    ``mdvis`` has no upper limit of its own. The schema declares 0 to 20, about a visit every
    two and a half weeks: counts above are clipped to 20. A bound of 77, the largest count known,
    would serve few people and quadruple the noise's weight.

    One person may own up to five rows: to protect persons rather than person-years, pass
    ``contributions=5``.

    Examples
    --------
    >>> load_randhie().formula
    'mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp'
    """
    from statsmodels.datasets import randhie  # slow to import, and seldom needed

    frame = randhie.load_pandas().data
    return Dataset(
        data=pd.DataFrame(frame),
        schema=Schema(
            {
                "mdvis": (0, 20),
                "lncoins": (0, 5),
                "idp": (0, 1),
                "lpi": (0, 8),
                "fmde": (0, 8.3),
                "physlm": (0, 1),
                "disea": (0, 60),
                "hlthg": (0, 1),
                "hlthf": (0, 1),
                "hlthp": (0, 1),
            }
        ),
        formula="mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp",
        source=(
            "RAND Health Insurance Experiment, as in Cameron & Trivedi (2005), "
            "from statsmodels.datasets.randhie."
        ),
    )
