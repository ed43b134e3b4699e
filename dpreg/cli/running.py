"""How a command ends: what it prints on which stream, and its exit code.

Tested in `tests/cli/test_cli.py`.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, Final, NoReturn

import click

from dpreg.errors import (
    ArgumentError,
    BudgetError,
    DataError,
    DatasetError,
    DpregError,
    DpregWarning,
    FormulaError,
    LedgerError,
    SchemaError,
)

__all__ = ["EXIT_CODES", "ended", "printed", "say"]

EXIT_CODES: Final[tuple[tuple[type[BaseException], int], ...]] = (
    (LedgerError, 7),
    (BudgetError, 6),
    (DataError, 5),
    (DatasetError, 5),
    (SchemaError, 4),
    (FormulaError, 3),
    (ArgumentError, 2),
    (DpregError, 2),
)
_UNFORESEEN: Final = 1
_INTERRUPTED: Final = 130


def say(text: str) -> None:
    """Print a message that is not a result."""
    click.echo(text, err=True)


def printed(content: Any) -> None:
    """Print JSON as the command's whole output."""
    click.echo(json.dumps(content, indent=1, allow_nan=False))


def ended(command: Callable[[], object]) -> NoReturn:
    """Run a command and leave the process with its exit code.

    Of an unexpected error only the kind is shown: its text or traceback could quote a row.
    """
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", DpregWarning)
    told: set[str] = set()  # a call warns when it is checked, and again when it is run

    def tell(text: str) -> None:
        if text not in told:
            told.add(text)
            say(f"dpreg: warning: {text}")

    warnings.showwarning = lambda text, *_, **__: tell(str(text))
    try:
        command()
        sys.stdout.flush()
        sys.exit(0)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.ClickException as fault:
        fault.show()
        sys.exit(fault.exit_code)
    except (KeyboardInterrupt, click.Abort):
        say("dpreg: interrupted; what was charged stays charged")
        sys.exit(_INTERRUPTED)
    except DpregError as fault:
        say(f"dpreg: {fault}")
        sys.exit(next(code for kind, code in EXIT_CODES if isinstance(fault, kind)))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_UNFORESEEN)
    except Exception as fault:
        say(f"dpreg: failed unexpectedly ({type(fault).__name__}); what was charged stays charged")
        sys.exit(_UNFORESEEN)
