"""The errors and the warning that dpreg raises.

What an error says, and whether it is raised, depends on public facts alone: the call, the
formula, the schema, the names and declared kinds of columns. No row ever has a part in it.
"""

import difflib
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Final

_SCALARS: Final = (int, float, bool, type(None), Fraction, Decimal)


def printable(text: str) -> str:
    """Return text with control characters spelt out, so that no name can steer a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = ".") -> str:
    """Return ``; did you mean 'age'?`` for a misspelt name, or `otherwise` where none is near.

    Either ends the sentence of an error.
    """
    spelt = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(name.casefold(), spelt, n=1, cutoff=0.6)
    return f"; did you mean {spelt[near[0]]!r}?" if near else otherwise


def quotable(text: str) -> bool:
    """Whether a text is one line that does not start as a printed list or JSON does."""
    return len(text.splitlines()) <= 1 and not text.lstrip().startswith(("[", "{"))


def shown(value: object, most: int = 80) -> str:
    """Tell in a message what was given in an argument's place, and no rows.

    Rows may stand there by mistake: a column where a number belongs, or the text of a CSV file
    where its path does. A line of text is quoted, cut where it is long; Python's own numbers, bools
    and None are shown; anything else, NumPy's numbers too, is named by its type.

    Examples
    --------
    >>> shown("agee"), shown(-1), shown([52311.25])
    ("'agee'", '-1', 'a list')
    """
    kind = type(value)
    if kind in _SCALARS:
        return repr(value)
    if not isinstance(value, str) or kind.__module__ == "numpy":
        article = "an" if kind.__name__.lower().startswith((*"aeio", "un", "nd")) else "a"
        return f"{article} {kind.__name__}"
    if not quotable(value):
        return "(text that may hold rows)"
    return repr(str(value) if len(value) <= most else value[: most - 3] + "...")


class DpregError(Exception):
    """Base of every error that dpreg raises on purpose."""


class ArgumentError(DpregError, ValueError):
    """An argument of the call is out of its range or of the wrong kind."""


class UnknownArgument(ArgumentError, TypeError):
    """A call was given an argument that it does not have."""


class SchemaError(DpregError, ValueError):
    """The schema, or its bounds carried through the formula, cannot be used."""


class FormulaError(DpregError, ValueError):
    """The formula holds something that dpreg refuses or cannot parse."""


class BudgetError(DpregError, ValueError):
    """A privacy budget is malformed, or would be overspent."""


class LedgerError(BudgetError):
    """A ledger cannot be used: it is damaged, was rolled back or copied, or is held too long."""


class DataError(DpregError, ValueError):
    """A table lacks a column that the call needs, holds it as the wrong kind, or has no file.

    Also a file of a result that cannot be read or written.
    """


class NotReleased(DpregError, AttributeError):
    """The quantity asked for is computed from raw rows and is never released."""


class DatasetError(DpregError, FileNotFoundError):
    """A data set that does not ship with dpreg is not where it was looked for."""


class DpregWarning(UserWarning):
    """A warning whose occurrence and text depend on public facts alone."""


class DpregDeprecation(DpregWarning, DeprecationWarning):
    """A spelling that the next minor version refuses."""
