"""The process that Spark forks its Pythons from, with dpreg imported: seconds less for each.

A task that fails takes its Python with it, and the next one starts afresh. After each task a Python
collects garbage, which is quick where modules are left out of it. The threads that these libraries
start here (jemalloc's, which know of forks) are idle when it forks.
"""

import gc

import oracles.tallies
from pyspark.daemon import manager

import dpreg.sources.arrow_cells
import dpreg.sources.spark

if __name__ == "__main__":
    assert oracles.tallies
    assert dpreg.sources.arrow_cells
    assert dpreg.sources.spark
    gc.freeze()
    manager()
