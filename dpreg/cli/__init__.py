"""The command `dpreg`: a curator's desk without Python.

Nothing is released on standard error, and no row is printed anywhere. Exit codes:

===  ============================================================================
0    done
1    an unexpected failure, of which only the kind is shown
2    a wrong option or argument, or a file that is not a result
3    the formula was refused
4    the schema was refused
5    a table or another file cannot be read or written, or lacks a column
6    the budget does not cover the call, or is malformed
7    the ledger cannot be used, or `verify` found it changed
130  interrupted
===  ============================================================================
"""

from dpreg.cli.main import main

__all__ = ["main"]
