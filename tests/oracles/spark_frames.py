"""Frames of Spark made of those of pandas, in partitions of known rows."""

import numpy as np

SCHEMA = (
    "unused string, x double, whole bigint, gone bigint, truth boolean, "
    "text string, label string, code int"
)


def split(spark, frame, parts, schema=SCHEMA):
    """Spread a frame over partitions in order, any number of which may be empty."""
    cells = frame.astype(object).where(frame.notna(), None)
    rows = [[to_python(cell) for cell in row] for row in cells.itertuples(index=False)]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, parts), schema)


def to_python(cell):
    return cell.item() if isinstance(cell, np.generic) else cell
