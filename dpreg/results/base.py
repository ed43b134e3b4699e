"""What every released result can do: be printed, compared, saved and read back.

A result is its JSON: equality, hash, pickle and `copy` all go through it, so nothing that the JSON
does not show can hide in a result. Two results are equal when the same was released, whenever that
was: the record does not count.

Tested in `tests/results/test_serialize.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from dpreg.paths import write_text
from dpreg.privacy.budget import exact
from dpreg.results import inference, notes, page, serialize, trace
from dpreg.results.claim import PrivacyClaim
from dpreg.results.codecs import Unreadable
from dpreg.results.record import ReleaseRecord
from dpreg.results.summary import Printed, Summary
from dpreg.sources.files import check_not_data

if TYPE_CHECKING:
    from dpreg.privacy.budget import Budget

__all__ = ["ERRORS_AS", "Released"]

ERRORS_AS = {"sampling_errors": "se_sampling", "privacy_errors": "se_privacy"}
"""Keys of standard errors in files, for `Released.saved_as`: they are those of dpreg 0.1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Released(Printed):
    """What results of every call hold and do; each class's docstring says what the fields are."""

    kind: ClassVar[str]
    saved_as: ClassVar[Mapping[str, str]] = {}
    """Keys in files, of fields whose name is not their key."""

    nobs: int | None
    eps: Fraction
    delta: Fraction
    claim: PrivacyClaim
    passes: int = 1
    notes: tuple[str, ...] = ()
    record: ReleaseRecord | None = None

    def _settle(self, tuples: Iterable[str] = (), numbers: Iterable[str] = ()) -> None:
        """Make tuples of fields, and exact numbers."""
        put = partial(object.__setattr__, self)
        for name in ("notes", *tuples):
            put(name, tuple(getattr(self, name)))
        for name in ("eps", "delta", *numbers):
            put(name, exact(getattr(self, name), name))

    @property
    def budget(self) -> pd.DataFrame:
        """What each step cost: step, mechanism, eps, delta, as exact decimal strings."""
        return self.claim.marked(self.claim.spends.frame())

    @property
    def spent(self) -> Budget:
        """The total cost, a `Budget` with `.eps` and `.delta`, exact."""
        return self.claim.spent

    @property
    def privacy(self) -> str:
        """The sentence that states exactly what is claimed."""
        return self.claim.sentence

    @property
    def neighbors(self) -> str:
        """The neighbour relation: "replace-one" or "add-remove"."""
        return self.claim.neighbors

    @property
    def contributions(self) -> int:
        """The number of rows that one person may own."""
        return self.claim.contributions

    @property
    def seeded(self) -> bool:
        """Whether the noise was seeded; then nothing is private."""
        return self.claim.seeded

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the released numbers say of the result, printed with the notes."""
        return notes.remarks(self)

    @property
    def trace(self) -> pd.DataFrame:
        """Why standard errors are what they are: at, rule, value; a line for each rule."""
        return trace.trace(self)

    @property
    def noise_share(self) -> pd.Series:
        """The share of each variance, the squared standard error, that the privacy noise adds."""
        fit = self._fitted("noise_share")
        share: pd.Series = (fit.bse_privacy**2 / fit.bse**2).clip(upper=1.0)
        return self.claim.marked_series(share)

    def to_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return the table of a paper: coef, std err, and interval (of level 1 - alpha)."""
        fit = self._fitted("to_frame")
        low, high = fit.conf_int(alpha).to_numpy().T
        known = ~np.isnan(low) & ~np.isnan(high)
        low, high = np.where(known, (low, high), np.nan)
        intervals = pd.arrays.IntervalArray.from_arrays(low, high, closed="both")
        frame = pd.DataFrame({"coef": fit.params, "std err": fit.bse, "interval": intervals})
        return self.claim.marked(frame)

    def summary(self, alpha: float = 0.05, *, full: bool = False) -> Summary:
        """Return the printable page; print it, or see its `as_html`, `as_latex`, `as_csv`.

        It is one screen, of LaTeX the three columns of a paper; with `full` it has all tables, the
        budget and every note.
        """
        return Summary(page.page(self, inference.level(alpha), full=full))

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds: plain mappings, lists, strings and numbers."""
        return serialize.encode(self)

    def to_json(self) -> str:
        """Return the result as JSON.

        Exact numbers are strings ("0.1", "1/3"), floats keep every bit, and floats that JSON
        cannot write are "NaN", "Inf" and "-Inf".
        """
        return serialize.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote. Runs no code from the text; raises ArgumentError."""
        return cls.from_payload(serialize.loads(text))

    @classmethod
    def from_payload(cls, payload: object) -> Self:
        """Read what `to_dict` returned."""
        if not isinstance(payload, dict):
            raise Unreadable("an object")
        return cls(**serialize.decode(payload, cls))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a JSON file; `dpreg.load` reads it.

        The file is written whole or not at all: where that fails (a full disk, no permission, a
        name that is not a file), a DataError says why and an earlier file is as it was. A name
        that ends like a table's file (.csv, .parquet) is an ArgumentError.
        """
        check_not_data(path)
        write_text(path, serialize.dumps(self.to_dict(), lines=True))

    def _released(self) -> str:
        """Return what was released as text: all but when and by what version."""
        return serialize.dumps({**self.to_dict(), "record": None})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Released):
            return NotImplemented
        return self.kind == other.kind and self._released() == other._released()

    def __hash__(self) -> int:
        return hash(self._released())

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return type(self).from_json, (self.to_json(),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        stamp = f" {self.claim.stamp}" if self.claim.stamp else ""
        return f"<{type(self).__name__}: {self._subject} ({self.spent}){stamp}>"

    @property
    def _subject(self) -> str:
        """What it is of, in a word or a formula."""
        raise NotImplementedError

    def _fitted(self, name: str) -> Any:
        """Return what has the estimates, or raise NotReleased of the name."""
        return self

    def _repr_latex_(self) -> str:
        return self.summary().as_latex()
