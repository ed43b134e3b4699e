"""Parts of a page of Python's, for R to print with its own names of terms and columns."""

from __future__ import annotations

from typing import Any

from dpreg.results.summary import Block, Facts, Grid

__all__ = ["laid_out"]


def laid_out(block: Block) -> dict[str, Any]:
    """Lay out a part of a page: facts by name, a table by column, or a line of text."""
    match block:
        case Facts():
            return {"facts": dict((*block.left, *block.right))}
        case Grid():
            heads = tuple(head.replace("\n", " ") for head in block.headers)
            cells = tuple(cell for column in zip(*block.rows, strict=True) for cell in column)
            return {"title": block.title, "heads": heads, "cells": cells}
    return {"text": f"{block.label}: {block.text}"}
