"""Data sets to try dpreg on, each with a public schema and a suggested formula.

``randhie`` ships inside statsmodels. The prostate and King County files do not ship with dpreg
and are never downloaded: the loaders read them from the folder that the environment variable
``DPREG_DATA`` names, and check that they are the very files. ``make_bay_area`` simulates.

The rows of these sets are public, but the schemas are written as a curator of confidential rows
has to write them: round bounds from the codebook, the design of the study or common knowledge,
never the smallest and largest row. Values beyond a bound are clipped without an error. Columns
coded 0 and 1 are declared as the numbers they are, so that coefficients carry plain names.
"""

from dpreg.datasets.sets import Dataset, load_kc_house, load_prostate, load_randhie, make_bay_area

__all__ = ["Dataset", "load_kc_house", "load_prostate", "load_randhie", "make_bay_area"]
