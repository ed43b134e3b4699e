"""A case of `benchmarks.holds`: a formula, public bounds, rows, and what intervals should hold."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks._holds_plain import Plain, plain_fit
from dpreg.formula.design import build_design
from dpreg.schema import Schema
from dpreg.sources import LocalSource, as_source

Floats = NDArray[np.float64]
HALVES = ("tuning", "held-out")
FAMILIES = {"linear": None, "logit": "binomial", "poisson": "poisson"}
"""Each family, and what `dp_glm` calls it."""
_LAYOUT = "1"
"""Of cached arrays: another one makes all anew."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One model on one table.

    Attributes
    ----------
    name, half : str
    table : str
        What the rows are from: the key of a source, or "drawn".
    formula : str
    schema : mapping
        Bounds from public knowledge, literals; the first level of a factor is its reference.
    family : {"linear", "logit", "poisson"}
    frame : callable
        Gives the rows; drawn tables take the generator, real ones leave it alone.
    mark : callable
        Gives what tells the rows of a real table from others, for the cache.
    truth : mapping or None
        Of a right model on a drawn table: true slopes by column. None: what is held is the fit
        without privacy, on the same rows.
    person : str or None
        The column that says whose a row is.
    call : mapping
        Further arguments of the public call.
    drawn, right : bool
        Whether rows are drawn; whether the model is right, so far as that can be known.
    """

    name: str
    half: str
    table: str
    formula: str
    schema: Mapping[str, Any]
    frame: Callable[[np.random.Generator], pd.DataFrame]
    family: str = "linear"
    mark: Callable[[], str] = str
    truth: Mapping[str, float] | None = None
    person: str | None = None
    call: Mapping[str, Any] = field(default_factory=dict)
    drawn: bool = False
    right: bool = False

    def rng(self, run: int, stream: int) -> np.random.Generator:
        """Return the generator of a run: stream 0 draws rows, 1 the noise of a release."""
        return np.random.default_rng([zlib.crc32(self.name.encode()), run, stream])

    def rows(self, run: int) -> pd.DataFrame:
        """Return the rows of a run; real ones are the same in all runs."""
        return self.frame(self.rng(run, 0))


@dataclass(frozen=True)
class Scaled:
    """The rows of a case as dpreg scales them, complete ones only, and their fit without privacy.

    Attributes
    ----------
    names : tuple of str
        Of the slopes.
    x : (n, p) array
        In [-1, 1], no constant.
    y : (n,) array
        In [-1, 1] for "linear", 0/1 for "logit", a count up to `cap` for "poisson".
    cap : float
    factors : (p,) array
        A slope in the user's units is the scaled one times its factor.
    persons : (n,) array of int, or None
    plain : Plain
    target : (p,) array
        What intervals should hold: true slopes, or those of `plain`.
    """

    names: tuple[str, ...]
    x: Floats
    y: Floats
    cap: float
    factors: Floats
    persons: NDArray[np.intp] | None
    plain: Plain
    target: Floats

    @property
    def errors(self) -> Floats:
        """Robust errors of the slopes of the fit without privacy; by person where there are."""
        covariance = self.plain.hc if self.plain.cluster is None else self.plain.cluster
        errors: Floats = np.sqrt(np.diag(covariance))[1:]
        return errors


def scaled(case: Case, run: int = 0) -> Scaled:
    """Return the scaled rows of a run; those of real tables are kept in the cache."""
    if case.drawn:
        return _made(case, case.rows(run))
    key = (_LAYOUT, case.formula, sorted(case.schema.items()), case.family, case.person)
    digest = hashlib.sha256(repr((key, case.mark())).encode()).hexdigest()[:12]
    kept = cache("scaled") / f"{case.name}-{digest}.npz"
    if kept.exists():
        return _read(kept)
    made = _made(case, case.rows(run))
    _write(kept, made)
    return made


def cache(part: str) -> Path:
    """Return a folder of the cache: DPREG_CACHE, or the user's."""
    base = os.environ.get("DPREG_CACHE") or os.environ.get("XDG_CACHE_HOME")
    found = (Path(base) if base else Path.home() / ".cache") / "dpreg-holds" / part
    found.mkdir(parents=True, exist_ok=True)
    return found


def _made(case: Case, frame: pd.DataFrame) -> Scaled:
    design = build_design(case.formula, Schema.from_any(dict(case.schema)))
    source = as_source(frame)
    assert isinstance(source, LocalSource)
    block = np.concatenate([design.block(c) for c in source.chunks(design.types, len(frame))])
    complete = block[:, 0] == 1
    block, columns = block[complete], design.columns[1:]
    x, y, cap, width = block[:, 1:-1], block[:, -1], 1.0, design.response.width
    if case.family != "linear":
        y = np.rint(design.response.offset + width * y)
        cap, width = design.response.hi, 1.0
    persons = None
    if case.person is not None:
        persons = pd.factorize(frame[case.person].to_numpy()[complete])[0]
    factors = np.array([width / column.width for column in columns])
    names = tuple(column.name for column in columns)
    plain = plain_fit(case.family, np.ascontiguousarray(x), np.ascontiguousarray(y), persons)
    target = plain.params[1:]
    if case.truth is not None:
        target = np.array([case.truth[name] for name in names]) / factors
    return Scaled(names, np.ascontiguousarray(x), y.copy(), cap, factors, persons, plain, target)


def _write(path: Path, made: Scaled) -> None:
    arrays: dict[str, Any] = {
        "x": made.x, "y": made.y, "factors": made.factors, "target": made.target,
        "params": made.plain.params, "hc": made.plain.hc,
    }  # fmt: skip
    if made.persons is not None and made.plain.cluster is not None:
        arrays |= {"persons": made.persons, "cluster": made.plain.cluster}
    part = path.with_name(f"{path.name}.{os.getpid()}.part.npz")
    np.savez(part, names=np.array(made.names), cap=made.cap, **arrays)
    part.replace(path)


def _read(path: Path) -> Scaled:
    with np.load(path) as kept:
        has = "persons" in kept
        return Scaled(
            names=tuple(kept["names"].tolist()),
            x=kept["x"],
            y=kept["y"],
            cap=float(kept["cap"]),
            factors=kept["factors"],
            persons=kept["persons"] if has else None,
            plain=Plain(kept["params"], kept["hc"], kept["cluster"] if has else None),
            target=kept["target"],
        )
