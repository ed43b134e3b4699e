"""Parts of a page of Python's, for R to print with its own names of terms and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpreg.results.summary import Block, Facts, Grid
from dpreg_bridge.words import Words, idiom, named_in_lists

__all__ = ["laid_out"]


def laid_out(
    block: Block, words: Words | None = None, names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Lay out a part of a page: facts by name, a table by column, or a line of text.

    With R's `names` of what it lists, all of it is in R's words.
    """

    def cell(text: str) -> str:
        return text if names is None else names.get(text) or idiom(text)

    match block:
        case Facts():
            facts = pd.Series(dict((*block.left, *block.right)), dtype=object)
            return {"facts": facts if words is None else facts.map(words.text)}
        case Grid():
            heads = tuple(head.replace("\n", " ") for head in block.headers)
            cells = tuple(cell(text) for column in zip(*block.rows, strict=True) for text in column)
            return {"title": block.title, "heads": heads, "cells": cells}
    text = f"{block.label}: {block.text}"
    return {"text": text if names is None else idiom(named_in_lists(text, names))}
