"""`dp_select`: private choice of the variables of a model, from a formula to a result.

Read downwards: the arguments become a `SelectionRequest`; a selector, looks or the paper's method,
is settled from public facts and opens its lines (`dpreg.api.select_route`); the ledger is charged;
the selector reads the rows, draws, and makes the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dpreg.api.context import check_known_rows, open_table
from dpreg.api.recorded import recorded
from dpreg.api.select_adaptive import select_family
from dpreg.api.select_route import route
from dpreg.formula.bounds import announce
from dpreg.looks.model import family_asked
from dpreg.options import FamilyLike, MethodLike, unpacked
from dpreg.request import SelectionRequest
from dpreg.results.selection import SelectionResults
from dpreg.signatures import Amount, SchemaLike, Table
from dpreg.sources.reader import showing

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["dp_select"]


@recorded
def dp_select(
    formula: str,
    data: Table,
    eps: Amount,
    *,
    delta: Amount = 0,
    schema: SchemaLike = None,
    where: str | None = None,
    family: FamilyLike | None = None,
    offset: str | None = None,
    method: MethodLike = "auto",
    neighbors: str = "replace-one",
    contributions: int | None = None,
    person: str | None = None,
    units: str = "term",
    keep: Iterable[str] = ("Intercept",),
    max_terms: int | None = None,
    hierarchy: str = "none",
    false_inclusions: Amount = 0.1,
    shares: Mapping[str, Amount] | None = None,
    fit: str | None = "auto",
    budget: Ledger | None = None,
    analyst: str | None = None,
    progress: bool | None = None,
    unsafe_seed: int | None = None,
) -> SelectionResults:
    """Choose the variables of a linear or generalised linear model with differential privacy.

    Every number in the result is either public, or drawn by a private mechanism and charged to a
    budget: the result may be published.

    Parameters
    ----------
    formula : str
        Two-sided, in patsy's language; row-wise functions only (`np.log`, `I`, `C`, `bs` with
        literal knots, ...).
    data : table
        The confidential rows: a pandas DataFrame or a mapping, the path or glob of Parquet or CSV
        files, anything that speaks Arrow, a function that returns chunks, a Dask or Spark
        DataFrame; see `dpreg.sources.as_source`. A row with a missing or undeclared value is left
        out.
    eps : number or decimal string
        The most that the whole call may cost; a decimal is taken exactly as typed.
    delta : number or decimal string, default 0
        Looks spend it where Gaussian noise is the smaller; the paper's methods spend it on "pcpl",
        on several draws and on coefficients.
    schema : mapping, Schema or path to a TOML or JSON file, optional
        Bounds of numeric columns, levels of categorical ones: public facts, never taken from the
        rows. Bounds of numeric columns that it leaves out are bought from a share of eps.
    where : str, optional
        Which rows the call is about, as a test of declared columns: ``"age >= 18 and g == 'a'"``,
        ``"g in ['a', 'b'] or not flag"``. Other rows count for nothing, and how many pass is
        private (`dpreg.formula.where`).
    family : {"binomial", "poisson", "quasipoisson"} or object, optional
        A name or an object, as for `dp_glm`; None is a linear model. A family is looked at as by
        `dp_glm`, which says what responses there are; terms are chosen from what the last look
        released, at no further cost. There "adaptive" is the only method, and the arguments that
        belong to linear models or to the paper's methods are refused.
    offset : str, optional
        With a family; as for `dp_glm`. It is in every model.
    method : {"auto", "adaptive", "pcls", "pcpl"} or object
        A name, or an object that has options as well: `dpreg.Auto`, `dpreg.Adaptive`, `dpreg.PCLS`,
        `dpreg.PCPL`.
        "adaptive" looks at the rows as `dp_ols` does, and tests each term beside all others by what
        the last look released: it finds more with enough rows, needs no radius, and names groups of
        terms that it cannot tell apart.
        "pcls" is penalised constrained least squares (Algorithm 1 of Lei et al.), "pcpl" profile
        likelihood (Algorithm 2), which needs delta and no knowledge of the residual variance.
        "auto" takes "adaptive" where a public rule finds enough rows and "pcls" otherwise; a note
        says why, and what "adaptive" would need. Where the number of rows is private ("add-remove",
        or `person`), "auto" first buys a noisy count with .02 of eps; the dearer of the two ways to
        go on is charged beforehand. A public number that only a pass would tell (a CSV file) is
        counted after the charge, which covers either way. Rows that can be read only once, and what
        only the paper's methods have (their `shares`, ``fit="share"``), mean "pcls" under "auto".
    neighbors : {"replace-one", "add-remove"}
        Tables are neighbours when one person's rows are replaced (n is public), or added or removed
        (n is private).
    contributions : int, optional
        The most rows that one person may own, 1 if it is left out. With `person` the most that are
        used, drawn at random: "adaptive" uses all unless it is given.
    person : str, optional
        The column that says whose row it is. "adaptive" sums all rows of a person before it limits
        them; the paper's methods use at most `contributions` rows of each, drawn at random. The
        claim holds for everybody, however many rows they own, and the number of rows is then
        private under both relations. Ids that are numbers are one person if
        they agree in 15 digits: put a letter before ids of more digits. See
        `dpreg.sources.persons`.
    units : {"term", "column"}
        Whether whole terms enter and leave a model, or single design columns.
    keep : tuple of str
        Terms in every model.
    max_terms : int, optional
        The most units outside `keep`.
    hierarchy : {"none", "strong"}
        "strong": an interaction only with its main effects.
    false_inclusions : number
        The expected number of useless terms under ``penalty="auto"`` and, with "adaptive", the
        level of all tests together: at most about so many useless terms are selected on average,
        and groups of useless terms named, whatever else has an effect.
    shares : mapping, optional
        Parts of eps for the steps bought on the way: "bounds", "radius", "sigma2", "count",
        "profile", "fit". Defaults: `dpreg.request.SHARES`. "adaptive" has "bounds" and, with
        ``fit="fresh"``, "fit" (.2, or .15 for a linear model without delta).
    fit : {"auto", "same", "fresh", "split", "share", None}
        Coefficients of the chosen model. With "adaptive": "fresh" spends a share of the budget on
        looks at the chosen columns, as `dp_ols` makes them; "same" takes them from the look that
        chose, beside all candidates and with intervals that allow for as many, and marks them as
        narrow: rows far from the rest count less there. With the paper's methods: "split" fits
        the other half, "share" the same rows with a share of eps. None fits nothing. "auto" is
        "fresh" with "adaptive", and "split" with the paper's.
    budget : Ledger, optional
        An account to charge, before a row is read.
    analyst : str, optional
        Whose share of the account is charged, where the ledger has caps for analysts.
    progress : bool, optional
        Show bars on stderr while rows are read and trees searched, for the curator's eyes only;
        default where stderr is a terminal.
    unsafe_seed : int, optional
        Makes the result reproducible and **not private**; every view of it says so.

    Returns
    -------
    SelectionResults
        With a family `GLMSelectionResults`.

    Raises
    ------
    ArgumentError, FormulaError, SchemaError, DataError, BudgetError
        From public facts alone and before anything is charged or read, except a DataError raised
        when the data source fails: what was charged then stays charged.

    Notes
    -----
    "adaptive" chooses terms from rows and residuals that are limited narrowly, to find more. Where
    residuals are skewed, a column on which only their spread depends can be chosen, too: its
    interval by the "fresh" looks, whose limits are wide, then tends to hold 0.

    The total cost is eps (and delta), as `result.budget` lists it; the proofs are beside the code
    in `dpreg.privacy` and `dpreg.selection`.

    References
    ----------
    Lei, J., Charest, A.-S., Slavkovic, A., Smith, A. and Fienberg, S. (2018). Differentially
    private model selection with penalized and constrained likelihood. JRSS-A 181, 609-633.

    Examples
    --------
    >>> import dpreg
    >>> rand = dpreg.datasets.load_randhie()
    >>> result = dpreg.dp_select("mdvis ~ disea + lpi", rand.data, eps=10, schema=rand.schema)
    >>> result.method, result.selected, str(result.spent)
    ('adaptive', ['Intercept', 'disea', 'lpi'], 'eps=10')
    """
    call = unpacked(locals())
    request = SelectionRequest.of(call)
    asked, shown = family_asked(request, call), showing(progress)
    reader, known = open_table(request, data, schema, progress, where)
    check_known_rows(reader, request.protection.n_is_public)
    if asked is not None:
        return select_family(request, asked, known, reader, budget)
    routed = route(request, known, reader, shown)
    announce(routed.way.bounds)
    routed.account.charge(budget, f"dp_select: {formula}")
    way, notes = routed.decided(reader)
    return way.choose(routed.account, notes)
