"""What every released result can do: be printed, compared, saved and read back.

A result is its JSON: equality, hash, pickle and `copy` all go through it, so nothing that the JSON
does not show can hide in a result. Two results are equal when the same was released, whenever that
was: the record does not count.

Attributes that statistics packages have and a private release cannot say why: ``withheld.toml`` has
the names of each class, by their reason.

Tested in `tests/results/test_serialize.py` and `tests/results/test_withheld.py`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError, NotReleased
from dpreg.paths import catalogue, read_text, write_text
from dpreg.results import inference, notes, page, saved
from dpreg.results.claim import PrivacyClaim, ReleaseRecord
from dpreg.results.summary import Printed, Summary
from dpreg.sources.files import check_not_data

if TYPE_CHECKING:
    from dpreg.privacy.budget import Budget
    from dpreg.results.classic import ClassicResults, HistogramResults
    from dpreg.results.regression import RegressionResults
    from dpreg.results.selection import SelectionResults

    Result: TypeAlias = ClassicResults | HistogramResults | RegressionResults | SelectionResults

KINDS: dict[str, Any] = {}
"""The class of each kind of result."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Released(saved.Settled, Printed):
    """What results of every call hold and do; each class's docstring says what the fields are."""

    kind: ClassVar[str]
    title: ClassVar[str]
    """What its page is of, with its fields."""
    subject: ClassVar[str]
    """The field that says what it is of, in a word or a formula."""
    saved_as: ClassVar[Mapping[str, str]] = {}
    """Keys in files, of fields whose name is not their key."""

    nobs: int | None
    eps: Fraction
    delta: Fraction
    claim: PrivacyClaim
    passes: int = 1
    notes: tuple[str, ...] = ()
    record: ReleaseRecord | None = None

    def __init_subclass__(cls, **more: Any) -> None:
        """Let `load` know every kind that is saved."""
        if "kind" in vars(cls):
            KINDS[cls.kind] = cls

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
        return tuple(dict.fromkeys(note.text for note in notes.measured(self)))

    @property
    def trace(self) -> pd.DataFrame:
        """Why standard errors are what they are: at, rule, value; NaN where a rule has none."""
        frame = pd.DataFrame(list(notes.traced(self)), columns=["at", "rule", "value"])
        return self.claim.marked(frame.astype({"value": float}))

    def summary(self, alpha: float = 0.05, *, full: bool = False) -> Summary:
        """Return the printable page; print it, or see its `as_html`, `as_latex`, `as_csv`.

        It is one screen, of LaTeX the three columns of a paper; with `full` it has all tables, the
        budget and every note.
        """
        return page.page(self, inference.level(alpha), full=full)

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds: plain mappings, lists, strings and numbers."""
        head = (saved.VERSION, self.kind, self.claim.stamp, self.claim.sentence)
        return dict(zip(saved.HEAD, head, strict=True)) | saved.fields_written(self)

    def to_json(self) -> str:
        """Return the result as JSON.

        Exact numbers are strings ("0.1", "1/3"), floats keep every bit, and floats that JSON
        cannot write are "NaN", "Inf" and "-Inf".
        """
        return saved.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote. Runs no code from the text; raises ArgumentError."""
        return cls.from_payload(saved.loads(text))

    @classmethod
    def from_payload(cls, payload: object) -> Self:
        """Read what `to_dict` returned."""
        return cls(**saved.decode(payload, cls))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a JSON file; `dpreg.load` reads it.

        The file is written whole or not at all: where that fails (a full disk, no permission, a
        name that is not a file), a DataError says why and an earlier file is as it was. A name
        that ends like a table's file (.csv, .parquet) is an ArgumentError.
        """
        check_not_data(path)
        write_text(path, saved.dumps(self.to_dict(), lines=True))

    def _released(self) -> str:
        """Return what was released as text: all but when and by what version."""
        return saved.dumps({**self.to_dict(), "record": None})

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
        return f"<{type(self).__name__}: {getattr(self, self.subject)} ({self.spent}){stamp}>"

    def _repr_latex_(self) -> str:
        return self.summary().as_latex()


class WithErrors:
    """The part of results that have numbers with two kinds of standard error."""

    __slots__ = ()
    saved_as: ClassVar[Mapping[str, str]] = {
        "sampling_errors": "se_sampling",
        "privacy_errors": "se_privacy",
    }
    """Keys in files, which are those of dpreg 0.1."""

    claim: PrivacyClaim
    sampling_errors: Floats
    privacy_errors: Floats

    def _index(self) -> pd.Index:
        """Return the names of the numbers."""
        raise NotImplementedError

    def _series(self, values: ArrayLike) -> pd.Series:
        return self.claim.marked(pd.Series(values, self._index(), copy=True))

    def _frame(self, values: Floats, columns: Sequence[Hashable] = (0, 1)) -> pd.DataFrame:
        """Return columns of numbers; by default the ends of intervals."""
        return self.claim.marked(pd.DataFrame(values, self._index(), list(columns), copy=True))

    @property
    def bse_sampling(self) -> pd.Series:
        """Standard errors that sampling alone would give; see `sampling_errors`."""
        return self._series(self.sampling_errors)

    @property
    def bse_privacy(self) -> pd.Series:
        """Standard errors that the privacy noise alone would give."""
        return self._series(self.privacy_errors)

    @property
    def noise_share(self) -> pd.Series:
        """The share of each variance, the squared standard error, that the privacy noise adds."""
        told: Any = self
        return self.claim.marked((self.bse_privacy**2 / told.bse**2).clip(upper=1.0))

    def to_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return the table of a paper: coef, std err, and interval (of level 1 - alpha)."""
        told: Any = self
        ends = told.conf_int(alpha)
        ends[ends.isna().any(axis=1)] = np.nan
        intervals = pd.arrays.IntervalArray.from_arrays(ends[0], ends[1], closed="both")
        frame = pd.DataFrame({"coef": told.params, "std err": told.bse, "interval": intervals})
        return self.claim.marked(frame)


_T = TypeVar("_T")


def with_names_of(kind: type) -> Callable[[type[_T]], type[_T]]:
    """Give a class the public methods and properties of another that it lacks.

    They are those of what its `_fitted` returns, or raises NotReleased of the name.
    """

    def given(owner: type[_T]) -> type[_T]:
        for name, held in inspect.getmembers(kind, lambda x: callable(x) or type(x) is property):
            if not name.startswith("_") and not hasattr(owner, name):
                setattr(owner, name, _of_fit(name, held))
        return owner

    return given


def _of_fit(name: str, held: Any) -> Any:
    """Return the same property, or method, of what `_fitted` returns: types and text are kept."""
    if isinstance(held, property):
        return property(wraps(held.fget)(lambda result: getattr(result._fitted(name), name)))  # type: ignore[arg-type]

    @wraps(held)
    def called(result: Any, *given: Any, **named: Any) -> Any:
        return getattr(result._fitted(name), name)(*given, **named)

    return called


@dataclass(frozen=True, slots=True)
class Withheld:
    """An attribute that is named only to say why it is not released.

    Reading it raises `NotReleased`, an AttributeError, so `hasattr` is False.
    """

    name: str
    reason: str

    def __get__(self, instance: object, owner: type | None = None) -> Withheld:
        """Raise, unless looked up on the class."""
        if instance is None:
            return self
        raise NotReleased(f"{self.name} is not released: {self.reason}.")


def withholding(owner: type[_T]) -> type[_T]:
    """Withhold the names that ``withheld.toml`` lists for a class."""
    for entry in catalogue("withheld.toml")[owner.__name__]:
        for name in entry["names"].split():
            setattr(owner, name, Withheld(name, entry["reason"]))
    return owner


def from_json(text: str) -> Result:
    """Read a result of any kind from the text that `to_json` wrote.

    Raises
    ------
    ArgumentError
        Where the text is not a result of this version, naming the field that is wrong.
    """
    payload = saved.loads(text)
    kind = payload["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise ArgumentError(f"this version of dpreg knows no saved results of kind {kind!r}")
    found: Result = KINDS[kind].from_payload(payload)
    return found


def load(path: str | os.PathLike[str]) -> Result:
    """Read a result from the file that `save` wrote. Runs no code from it.

    Raises
    ------
    DataError
        Where there is no such file, it is not a regular one, or may not be read.
    ArgumentError
        Where it holds no result, or one of a newer version.
    """
    return from_json(read_text(path))
