"""Options that tests vary one by one, put into the method and family that calls take."""

import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import dpreg
from dpreg.errors import DpregDeprecation
from dpreg.options import grouped
from dpreg.request import defaults_of


def spelled(call: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of a call whose method and family hold what is an option of theirs."""
    told = dict(options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpregDeprecation)
        grouped(call, told, defaults_of(inspect.signature(getattr(dpreg, call))))
    return told
