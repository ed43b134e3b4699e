"""R's words for what Python says: names of terms and columns, and the idiom of texts.

A column's name in R is put together from what the column is made of: the variables of its term, by
R's labels, and the level, or the spline's number, that each has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dpreg.formula.factors import Coded, bind, column_types
from dpreg.formula.rows import Part
from dpreg.formula.terms import code_terms, read_terms
from dpreg.schema import Schema

__all__ = ["INTERCEPT", "Column", "Words", "idiom", "named_in_lists", "shortest"]

INTERCEPT: Final = ("Intercept", "(Intercept)")

_IDIOM: Final = [
    (re.compile(python), r)
    for python, r in (
        (r"^factor (?=')", "term "),
        # What to install and to call.
        (
            r"(?:run )?`?pip install '?dpreg\[(\w+)\]'?`?",
            r'run dpreg::install_dpreg("path/to/dpreg", extras = "\1") and restart R',
        ),
        (r"\bLedger\(cap, (path|url)\)", r"dp_ledger(\1, eps)"),
        (r"as `Ledger\.head` and `dpreg ledger show` print it", "as verify_ledger() tells it"),
        (r"`dpreg ledger (adopt|verify)( --head| --witness)?`", r"\1_ledger()"),
        (r"\bby (analyst|witness)=(?!\w)", r"by \1 = "),
        (r"\bwhere=(?=['\"])", "subset = "),
        (r"budget=Ledger\(\.\.\.\)", "budget = dp_ledger(...)"),
        # What summary() calls its columns.
        (r"\bP>\|z\|", "Pr(>|z|)"),
        (r"\bcoef\b(?!\()", "Estimate"),
        (r"\bstd err\b", "Std. Error"),
        (r"\bdpreg\.plan\(", "dp_plan("),
        (r"\bdpreg\.(?=[A-Z])", ""),
        # Terms.
        (r"\bC\((\w+), levels=\[([^]]*)\]\)", r"factor(\1, levels = c(\2))"),
        (r"\bC\((\w+)\)", r"factor(\1)"),
        (r"\bnp\.(log|log1p|exp|sqrt|abs)\b", r"\1"),
        (r" \*\* ", "^"),
        # Lists.
        (r"shares\['(\w+)'\]", r"shares$\1"),
        (
            r"\{['\"](\w+)['\"]: \{\"levels\": \[([^]]*)\]\}\}",
            r"list(\1 = list(levels = c(\2)))",
        ),
        (r"\{\"levels\": \[([^]]*)\]\}", r"list(levels = c(\1))"),
        (r"\{['\"](\w+)['\"]: [(\[]([^])]*)[)\]]\}", r"list(\1 = c(\2))"),
        (r"'(\w+)': \[\"level\", \.\.\.\]", r'\1 = c("level", ...)'),
        (r"\[(\"level\", \.\.\.|False, True|True, False|\"a\", \"b\")\]", r"c(\1)"),
        (r"(?<!c)\((lowest, highest)\)", r"c(\1)"),
        (r"\bdeclare it as \(0, 1\)", "declare it as c(0, 1)"),
        ("a mapping of column names to such pairs", "a list of such pairs by column"),
        ("a mapping of column names to", "a named list of"),
        (r"\ba tuple of\b", "a vector of"),
        (r"\ba DataFrame\b", "a data frame"),
        (r"must be a number, not list\b", "must be one number, not several"),
        # Constants and types.
        (r"\bTrue\b", "TRUE"),
        (r"\bFalse\b", "FALSE"),
        (r"\bNone\b(?! of)", "NULL"),
        (r"\bbool\b", "logical()"),
        (r"\bfloat64\b", "double precision"),
        (r"\ban integer\b", "a whole number"),
        (r"\b([a-z_]+)=(?=[\"'0-9A-Z]|[.]{3})", r"\1 = "),
    )
]

_LISTS: Final = re.compile(
    "(Marked|Weak|Never selected|The noise hides|Nothing is known of|z is in the thousands for"
    "|The fit was ridged because)"
)
"""How a text begins that lists coefficients."""


def idiom(text: str) -> str:
    """Say in R's idiom what an error, a warning or a note of dpreg says in Python's."""
    for python, r in _IDIOM:
        text = python.sub(r, text)
    return text


def shortest(number: float) -> str:
    """Return the shortest decimal that is this number, as R writes it for a level."""
    if abs(number) >= 1e15:
        return np.format_float_scientific(number, trim="-", exp_digits=2)
    return np.format_float_positional(number, trim="-")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a design: Python's name of its term, its variables in R, what follows each."""

    term: str
    labels: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """R's name of the column."""
        parts = zip(self.labels, self.ends, strict=True)
        return ":".join(map("".join, parts)) or INTERCEPT[1]


@dataclass(frozen=True, slots=True)
class Words:
    """What R calls the parts of a formula.

    Attributes
    ----------
    terms : mapping
        Terms by Python's names, in the order of R's formula.
    labels : mapping
        Variables by their codes.
    """

    terms: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, told: Mapping[str, Any] | None) -> Words:
        """Read what R sent of its formula, if anything."""
        return cls() if told is None else cls(told["terms"] or {}, told["labels"] or {})

    def columns(self, formula: str, schema: Any) -> dict[str, Column]:
        """Take the columns that a formula's right side may have apart, by Python's names."""
        parsed, declared = read_terms(formula), Schema.from_any(schema)
        specs = {code: parsed.specs[code] for term in parsed.terms for code in term}
        types = column_types(specs, declared)
        factors = {code: bind(code, spec, types, response=False) for code, spec in specs.items()}
        found = {INTERCEPT[0]: Column(INTERCEPT[0])}
        terms, columns = code_terms(parsed, factors)
        names = [INTERCEPT[0], *columns]
        for term in terms:
            for name in (names[place] for place in term.columns if place):
                codes = (part.factor.code for part in columns[name])
                labels = tuple(self.labels.get(code, code) for code in codes)
                found[name] = Column(term.name, labels, tuple(map(_end, columns[name])))
        return found

    def units(self, columns: Mapping[str, Column]) -> dict[str, str]:
        """Name what may be chosen, terms or columns."""
        return {name: column.name for name, column in columns.items()} | dict(self.terms)

    def order(self, names: Sequence[str], columns: Mapping[str, Column]) -> list[int]:
        """Return the places of terms or columns in the order of R's formula."""
        place = {term: j for j, term in enumerate(self.terms)}
        own = [name if name in place else columns[name].term for name in names]
        return sorted(range(len(names)), key=lambda j: place.get(own[j], len(place)))

    def text(self, text: str) -> str:
        """Say a text in R's words, terms and variables that stand in quotes by R's labels."""
        known = {**self.terms, **self.labels}
        for code in sorted(known, key=len, reverse=True):
            text = text.replace(f"'{code}'", f"'{known[code]}'")
        return idiom(text)


def named_in_lists(text: str, names: Mapping[str, str]) -> str:
    """Give coefficients R's names where a text lists them."""
    other = sorted((name for name, r in names.items() if r != name), key=len, reverse=True)
    if not other or not _LISTS.match(text):
        return text
    listed = "|".join(map(re.escape, other))
    pattern = rf"(: |, | of | for |hides )({listed})(?=, |\. |: | and | \(|$)"
    return re.sub(pattern, lambda found: found[1] + names[found[2]], text)


def _end(part: Part) -> str:
    factor = part.factor
    if isinstance(factor, Coded) and part.levels is not None:
        level = factor.levels[int(np.argmax(part.levels))]
        if isinstance(level, bool):
            return str(level).upper()
        return level if isinstance(level, str) else shortest(float(level))
    several = not isinstance(factor, Coded) and len(factor.intervals) > 1
    return str(part.place + 1) if several else ""
