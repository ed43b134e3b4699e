"""Arguments that many calls have: their types, defaults and paragraphs, each in one place.

A call lists what it has of its own, and the rest by ``**others: Unpack[OfFormula]``. `signature_of`
and `page_of` write both into its signature and its page, so that ``help(call)`` shows all of them.

Tested in `tests/api/test_signatures.py`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypedDict

if TYPE_CHECKING:
    from dpreg.options import Amount, Bounds, SchemaLike
    from dpreg.privacy.ledger import Ledger


class Every(TypedDict, total=False):
    """Arguments of every call.

    schema : mapping, Schema or path, optional
        Bounds and levels of the raw columns: public facts, never taken from the rows.
    where : str, optional
        Which rows the call is about, as a test of declared columns: ``"age >= 18 and g == 'a'"``,
        ``"g in ['a', 'b'] or not flag"``. Other rows are excluded, and how many pass is
        private (`dpreg.formula.where`).
    neighbors : {"replace-one", "add-remove"}
        Tables are neighbours when one person's rows are replaced (n is public), or added or removed
        (n is private).
    contributions : int, optional
        The most rows that one person may own, 1 if it is left out; with `person` the most that are
        used, drawn at random.
    person : str, optional
        The column that says whose row it is. At most `contributions` rows of each person are used,
        drawn at random, so the claim holds for everybody, however many rows they own. The number of
        rows is then private under both relations. Ids that are numbers are one person if they agree
        in 15 digits: put a letter before ids of more digits. See `dpreg.sources.persons`.
    budget : Ledger, optional
        An account to charge, before a row is read.
    analyst : str, optional
        Whose share of the account is charged, where the ledger has caps for analysts.
    progress : bool, optional
        Show bars on stderr while the call works, for the curator's eyes only; default where stderr
        is a terminal.
    unsafe_seed : int, optional
        Makes the result reproducible and **not private**; every view of it says so.
    """

    schema: SchemaLike
    where: str | None
    neighbors: str
    contributions: int | None
    person: str | None
    budget: Ledger | None
    analyst: str | None
    progress: bool | None
    unsafe_seed: int | None


class OfFormula(Every, total=False):
    """Arguments of every call of a formula.

    schema : mapping, Schema or path to a TOML or JSON file, optional
        Bounds of numeric columns, levels of categorical ones: public facts, never taken from the
        rows. Bounds of regressors that it leaves out are bought from a share of eps.
    contributions : int, optional
        The most rows that one person may own, 1 if it is left out. With `person` the most that are
        used, drawn at random: looks use all unless it is given.
    person : str, optional
        The column that says whose row it is. Looks sum all rows of a person before they limit them,
        and errors are clustered by person; other methods use at most `contributions` rows of each,
        drawn at random. So the claim holds for everybody, however many rows they own, and the
        number of rows is private under both relations. Ids that are numbers are one person if they
        agree in 15 digits: put a letter before ids of more digits. See `dpreg.sources.persons`.
    shares : mapping, optional
        {"bounds": part of eps} where bounds are bought.
    """

    shares: Mapping[str, Amount] | None


class OfColumns(Every, total=False):
    """Arguments of every call of columns.

    bounds : (lo, hi), or mapping of column to (lo, hi), optional
        Public. A column that is not named takes its bounds from `schema`.
    by : str, optional
        A column with declared levels: a result for each of its groups, at the cost of one.
    complete : bool
        You state, as a public fact, that no value is missing, so that the count is n (replace-one,
        without `by`). If that is wrong, privacy still holds, and missing values count as the
        middle of the bounds.
    """

    bounds: Bounds
    by: str | None
    complete: bool


_DEFAULTS: Final[Mapping[str, Any]] = {"neighbors": "replace-one", "complete": False}
"""Of those whose default is not None."""


def signature_of(call: Callable[..., Any], others: type) -> inspect.Signature:
    """Return a call's signature, with what it takes of `others` by keyword."""
    own = inspect.signature(call)
    named = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
    more = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_DEFAULTS.get(name),
            annotation=kind.__forward_arg__,
        )
        for name, kind in others.__annotations__.items()
    ]
    return own.replace(parameters=[*named, *more])


def page_of(call: Callable[..., Any], others: type) -> str:
    """Return a call's page, with the paragraphs of arguments that it leaves to `others`."""
    title, returns = "Parameters\n----------\n", "\n\nReturns\n"
    head, _, rest = (inspect.getdoc(call) or "").partition(title)
    own, _, tail = rest.partition(returns)
    told = paragraphs(own)
    for shared in (others, Every):
        for name, paragraph in paragraphs(inspect.getdoc(shared) or "").items():
            told.setdefault(name, paragraph)
    return head + title + "\n".join(dict.fromkeys(told.values())) + returns + tail


def paragraphs(section: str) -> dict[str, str]:
    """Return each argument's paragraph; arguments may share one."""
    found = [part for part in re.split(r"\n(?=\S)", section) if " : " in part.partition("\n")[0]]
    return {name: part.rstrip() for part in found for name in part.partition(" : ")[0].split(", ")}
