"""The tables of a page: released numbers in, strings out.

First its grids, then the marks of coefficients, which say what a release does not show of them in a
letter and in words, and then the facts of a whole page: how each is read, and where it stands.

Tested in `tests/results/test_views.py` and `tests/results/test_page.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.paths import catalogue
from dpreg.privacy.budget import decimal_string
from dpreg.privacy.noise import OBJECTIVE
from dpreg.results import notes
from dpreg.results.claim import Look, PrivacyClaim, ReleasedLook
from dpreg.results.summary import Block, Facts, Grid, Paragraph

if TYPE_CHECKING:
    from dpreg.results.classic import Estimates, HistogramResults
    from dpreg.results.contrast import Contrast
    from dpreg.results.regression import RegressionResults
    from dpreg.results.selection import SelectionResults

_MANY_TERMS: Final = 40
"""A table of terms longer than this gathers those that no draw holds in a paragraph."""
_BAR: Final = 24
_KINDS: Final = {
    "box": "on the unit scale",
    "locating": "to locate",
    "fitting": "to fit",
    "minimum": "to fit, by a minimum",
}


def named(label: object) -> str:
    """Return the name of a number, of its group as well where there are groups."""
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def coefficients(fit: RegressionResults, alpha: float, *, full: bool) -> Grid:
    """Return the table of coefficients; without errors where there are none.

    The whole page has both kinds of standard error; one screen has the noise's share of the
    variance, and marks.
    """
    marked = ["".join(each.values()) for each in marks(fit, alpha)]
    shown = [("mark", marked, "l")] if any(marked) and not full else []
    if not notes.has_errors(fit):
        return _grid(("", fit.exog_names, "l"), ("coef", _each(fit.coefficients, 4)), *shown)
    if full:
        cut = fit.method == "staged" and fit.kind == "regression"  # a family's looks cut none
        more = _both_errors(fit, "sampling\nand cut" if cut else "sampling\nerror")
    else:
        more = [("noise", map(_percent, fit.noise_share)), ("mark", marked, "l")]
    numbers: list[Any] = [fit.params, fit.bse, fit.tvalues, fit.pvalues, fit.conf_int(alpha)]
    told = _inference(alpha, np.column_stack(numbers))
    return _grid(("", fit.exog_names, "l"), *told, *more)


def paper(result: Any, alpha: float) -> Grid:
    """Return the table of a paper: coefficients, standard errors and intervals."""
    frame = result.to_frame(alpha)
    first = (("", map(named, frame.index), "l"), ("coef", _each(frame["coef"], 4)))
    if frame["std err"].isna().all():
        return _grid(*first)
    errors = ["" if math.isnan(value) else fixed(value) for value in frame["std err"]]
    ends = frame["interval"].array
    limits = zip(_each(ends.left), _each(ends.right), errors, strict=True)
    intervals = [f"[{low}, {high}]" * bool(error) for low, high, error in limits]
    return _grid(*first, ("std err", errors), (f"{100 * (1 - alpha):g}% interval", intervals))


def ratios(fit: Any, alpha: float) -> Grid:
    """Return odds ratios or ratios of rates, with intervals where there are any."""
    table = fit.ratios(alpha)
    heads = (table.columns[0], *_headers(alpha)[-2:])
    told = table.iloc[:, : 1 if np.isnan(table.to_numpy()[:, 1:]).all() else 3].to_numpy().T
    columns = ((head, _each(values)) for head, values in zip(heads, told, strict=False))
    return _grid(("", map(str, table.index), "l"), *columns)


def contrast(result: Contrast, alpha: float) -> Grid:
    """Return the table of a test of constraints."""
    table = result.summary_frame(alpha)
    return _grid(("", map(str, table.index), "l"), *_inference(alpha, table.to_numpy()))


def looks(listed: Sequence[Look | ReleasedLook], *, family: bool) -> list[Block]:
    """Return a line for each look: what it was for, its share of the noise, and its limits."""
    if not listed:
        return []
    names = [
        "alone" if look.mechanism == OBJECTIVE and not family else f"look {place}"
        for place, look in enumerate(listed, 1)
    ]
    told = [_of_look(look, family) for look in listed]
    sides = {"rows are seen": "l", "rows": "l", "opened": "l"}
    columns = ((head, [one[head] for one in told], sides.get(head, "r")) for head in told[0])
    return [_grid(("", names, "l"), *columns)]


def _of_look(look: Look | ReleasedLook, family: bool) -> dict[str, str]:
    """Return a look's line, by its headers; those of dpreg 0.2 have other ones."""
    if isinstance(look, ReleasedLook):
        columns, score, *_ = [*(f"{end:.3g}" for end in look.limits), "", ""]
        told = {"rows are seen": _KINDS[look.kind], "share": f"{float(look.share):.2g}"}
        return told | {"limit\nof columns": columns, "limit\nof score": score}
    first, at = look.radius is None, "at a fit" if family else "located"
    told = {"rows": "box" if first else at, "share": decimal_string(look.share)}
    if family:
        told["information\nlimit"] = "" if look.radius is None else f"{look.radius**2:.3g}"
        told["score\nlimit"] = "" if first else f"{look.width:.3g}"
        return told | {"relative\nweight": f"{look.weight:.3f}"}
    told["radius"] = "" if first else f"{look.radius:.2f}"
    told |= {"residual\nclip": f"{look.width:.3g}", "opened": "yes" if look.opened else "no"}
    return told | {"mean\nweight": f"{look.weight:.3f}"}


def terms(result: SelectionResults, *, full: bool = True) -> Iterator[Block]:
    """Give the table of terms, chosen and not, and a line with all groups."""
    shares, errors = dict(result.selection_frequencies), dict(result.frequency_errors)
    grouped = {term for group in result.alternatives for term in group}
    every = [*result.kept, *result.candidates]
    never = [term for term in every if shares.get(term) == 0 and term not in grouped]
    absent = never if len(every) > _MANY_TERMS else []
    listed = [term for term in every if term not in absent]
    chosen = dict.fromkeys(grouped, "one of") | dict.fromkeys(result.selected, "yes")
    told: dict[str, Mapping[str, str]] = {}
    if full:
        told["columns"] = {term: str(len(result.columns.get(term, (term,)))) for term in listed}
    if result.draws > 1:
        told["frequency (se)"] = {t: f"{shares[t]:.2f} ({errors[t]:.2f})" for t in shares}
    if result.levels:
        told["level"] = {term: _level(value) for term, value in result.levels.items()}
        told["se"] = {term: fixed(value, 4) for term, value in result.choice_errors.items()}
    if result.stabilities:
        told["stability"] = {term: f"{value:.2f}" for term, value in result.stabilities.items()}
    yield _grid(
        ("term", listed, "l"),
        ("role", ["candidate" if term in shares else "kept" for term in listed], "l"),
        ("selected", [chosen.get(term, "no") for term in listed], "l"),
        *((head, [of.get(term, "") for term in listed]) for head, of in told.items()),
    )
    if absent:
        yield Paragraph(f"Never selected ({len(absent)})", ", ".join(absent))
    if lines := ["{" + ", ".join(group) + "}" for group in result.alternatives]:
        yield Paragraph("One of", "; ".join(lines))


def _level(value: float) -> str:
    return ">1" if value > 1 else "<1e-6" if value < 1e-6 else f"{value:.2g}"


def estimates(result: Estimates, alpha: float, *, full: bool) -> Grid:
    """Return the table of means, quantiles, parameters or shares; by group where there are any."""
    index = result.params.index
    names = [
        (str(head or ""), index.get_level_values(j), "l") for j, head in enumerate(index.names)
    ]
    last, (low, high) = _both_errors(result, places=4), result.conf_int(alpha).to_numpy().T
    return _grid(
        *names,
        ("share" if result.kind == "histogram" else "coef", _each(result.estimates, 4)),
        ("std err", _each(result.bse, 4)),
        *zip(_headers(alpha)[-2:], (_each(end, 4) for end in (low, high)), strict=True),
        *(last if full else [("noise", map(_percent, result.noise_share))]),
    )


def picture(result: HistogramResults) -> Grid:
    """Return the shares of many bins as bars, on one line each."""
    shares, errors = result.estimates, result.bse.to_numpy()
    bars = result.heights(result.probabilities)
    top = max(float(bars.max()), float(np.finfo(float).tiny))
    # All as fine as the least error: shares of bins that hold nothing are read beside the others.
    least = min((float(error) for error in errors if 0 < error < 1), default=1.0)
    places = max(4, min(1 - math.floor(math.log10(least)), 9))
    columns = (
        ("share", (_fine(share, places) for share in shares)),
        ("std err", (_fine(error, places) for error in errors)),
        ("density", ("#" * round(_BAR * max(bar, 0.0) / top) for bar in bars), "l"),
    )
    return _grid(("", result.labels, "l"), *columns)


def _fine(number: float, places: int) -> str:
    """Return a number with so many decimal places, or as in tables where that is too long."""
    return f"{number:z.{places}f}" if abs(number) < 1e5 else fixed(number, places)


def budget(claim: PrivacyClaim) -> Grid:
    """Return what each step cost, and what was charged in all."""
    frame = claim.spends.frame()
    texts = [name for name in ("step", "mechanism", "rows") if name in frame]
    rows = [*frame[[*texts, "eps", "delta"]].itertuples(index=False, name=None)]
    rows.append(("total", *("",) * (len(texts) - 1), *claim.spent.as_decimal()))
    return Grid((*texts, "eps", "delta"), tuple(rows), "l" * len(texts) + "rr")


Column = tuple[str, Iterable[str]] | tuple[str, Iterable[str], str]
"""A header, cells, and a side if it is not the right one."""


def _grid(*columns: Column) -> Grid:
    """Return a table of columns that are equally long."""
    heads, cells, sides = zip(*((*column, "r")[:3] for column in columns), strict=True)
    return Grid(tuple(heads), tuple(zip(*cells, strict=True)), "".join(sides))


def _each(numbers: Iterable[float], places: int = 3) -> list[str]:
    return [fixed(number, places) for number in numbers]


def _headers(alpha: float) -> tuple[str, ...]:
    """Return the headers that statsmodels' tables have."""
    return ("coef", "std err", "z", "P>|z|", f"[{alpha / 2:.5g}", f"{1 - alpha / 2:.5g}]")


def _inference(alpha: float, numbers: Floats) -> list[Column]:
    """Write coefficient, error, z, p-value and both limits, each as statsmodels does."""
    coef, error, z, p, low, high = numbers.T
    ratio = (f"{x:.3f}" if abs(x) < 1e5 else f"{x:.3g}" for x in z)
    told = (_each(coef, 4), _each(error), ratio, (f"{x:.3f}" for x in p), _each(low), _each(high))
    return list(zip(_headers(alpha), told, strict=True))


def _both_errors(result: Any, head: str = "sampling\nerror", places: int = 3) -> list[Column]:
    """Return what sampling and the noise alone would give as standard errors."""
    sampling, privacy = (_each(e, places) for e in (result.bse_sampling, result.bse_privacy))
    return [(head, sampling), ("privacy\nnoise", privacy)]


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if math.isfinite(share) else ""


def fixed(number: float, places: int = 3) -> str:
    """Return a number as statsmodels' tables do: fixed where that is readable, else scientific.

    At most six digits are shown of a number beyond 100, and three of one that rounds to nothing.
    """
    if number == 0 or not math.isfinite(number):
        return f"{number:.{places}f}"
    if not 10.0**-places <= abs(number) < 1e5:
        return f"{number:.{places if abs(number) > 1 else 3}g}"
    before = math.floor(math.log10(abs(number))) + 1
    return f"{number:.{max(0, min(places, 6 - before))}f}"


_LETTERS: Final = {
    "not significant": "0",
    "wide": "w",
    "narrow": "n",
    "too few rows to say": "?",
    "hidden direction": "h",
    "rare level": "r",
}


def marks(fit: RegressionResults, alpha: float) -> list[dict[str, str]]:
    """Return what is to be said of each coefficient, and the letter that stands for it."""
    zero = f"not significant at the {100 * alpha:g}% level, which does not show it is 0"
    said = [
        [zero] * bool(p >= alpha and name != "Intercept") + [fit.weak.get(name, "")]
        for name, p in zip(fit.exog_names, fit.pvalues, strict=True)
    ]
    return [{why: _letter(why) for why in each if why} for each in said]


def _letter(why: str) -> str:
    return next((letter for start, letter in _LETTERS.items() if why.startswith(start)), "*")


def facts(layout: str, result: Any) -> Facts:
    """Lay out the facts of a result, or of the coefficients within one."""
    left, right = (
        tuple((name, told) for name in names if (told := fact(name, result)) is not None)
        for names in catalogue("layouts.toml")[layout].values()
    )
    return Facts(left, right)


def fact(name: str, result: Any) -> str | None:
    """Return a fact in words: what `_FACTS` says, else the attribute of that name."""
    known = _FACTS.get(name)
    match known(result) if known else getattr(result, name.lower().replace(" ", "_")):
        case bool(yes):
            return "yes" if yes else "no"
        case int(count):
            return f"{count:,}"
        case Fraction() | float() as number:
            exactly = decimal_string(number) if isinstance(number, Fraction) else "/"
            short = len(exactly) <= 10 and "/" not in exactly
            return exactly if short else f"{float(number):.6g}"
        case text:
            return text


def _sd(fit: Any) -> str | None:
    variance = fit.error_variance
    return None if variance is None else fixed(math.sqrt(max(variance, 0)), 4)


def _complete(result: Any) -> str | None:
    """Return the released number of complete rows; of old families that hide it 0, as was said."""
    if result.kind == "classic":
        alone = result.counts is not None and not result.groups
        return f"{result.counts[0]:,.0f}" if alone else None
    rows = result.complete_rows
    if rows is None and (result.kind == "regression" or result.method == "adaptive"):
        return None
    return f"{rows or 0:,.0f}"


def _sources(bounds: Mapping[str, str]) -> str:
    counts = Counter(bounds.values())
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{counts[source]} {source}" for source in sorted(counts, reverse=True)) or "-"


_METHODS: Final = {"pcls": "PCLS", "pcpl": "PCPL"}
# What was spent is shown of eps and delta: pure noise costs no delta, whatever the call allows.
_FACTS: Final[Mapping[str, Callable[[Any], bool | float | Fraction | str | None]]] = {
    "Contributions": lambda r: "all" if r.claim.whole else r.contributions,
    "eps": lambda r: r.spent.as_decimal()[0],
    "delta": lambda r: r.spent.as_decimal()[1],
    "n": lambda r: "private" if r.nobs is None else r.nobs,
    "Dep. Variable": lambda r: r.endog_names,
    "Fit": lambda r: r.method if r.kind == "regression" else r.fit,
    "Rows": lambda r: "held out" if r.fit == "split" else "all",
    "Complete, noisy": _complete,
    "R-squared": lambda r: None if r.explained is None else fixed(r.explained),
    "Residual sd": _sd,
    "Bounds": lambda r: _sources(r.bounds),
    "Intervals": lambda r: notes.line("intervals", r),
    "Scale": lambda r: (
        fixed(r.error_variance) if math.isfinite(r.error_variance or math.nan) else "not released"
    ),
    "Method": lambda r: _METHODS.get(r.method, r.method),
    "Models": lambda r: r.n_models if r.n_models < 10**12 else f"{Decimal(r.n_models):.3e}",
    "Terms": lambda r: f"{len(r.kept)} kept, {len(r.candidates)} candidates",
    "max_terms": lambda r: "none" if r.max_terms is None else r.max_terms,
    "Radius": lambda r: None if r.radius is None else f"{fact('radius', r)} ({r.radius_source})",
    "phi (per column)": lambda r: r.phi,
    "psi (per term)": lambda r: r.psi,
    "Groups": lambda r: None if r.by is None else f"{len(r.groups)} of {r.by}",
    "Bins": lambda r: f"{len(r.labels)} ({r.binning})",
}
