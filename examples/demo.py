"""Which variables drive visits to a doctor? A private answer from the RAND health data.

Run by `make demo`. The printed numbers are released under differential privacy at eps = 1, so
each run draws new ones.
"""

import dpreg
from dpreg import datasets


def main() -> None:
    randhie = datasets.load_randhie()
    print(randhie.source, end="\n\n")
    result = dpreg.dp_select(randhie.formula, randhie.data, eps=1, schema=randhie.schema)
    print(result.summary())


if __name__ == "__main__":
    main()
