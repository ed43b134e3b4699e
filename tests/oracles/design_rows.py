"""A table's rows as a design's scaled row vectors, block by block."""

from collections.abc import Iterator

import numpy as np

from dpreg.formula.design import Design
from dpreg.sources import LocalSource


def blocks(design: Design, source: LocalSource, rows: int = 8192) -> Iterator[np.ndarray]:
    chunks = source.chunks(design.types, rows)  # raises at once, not at the first block
    return (design.block(chunk) for chunk in chunks)
