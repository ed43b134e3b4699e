"""Run the command as ``python -m dpreg.cli``.

Tested in `tests/cli/test_cli.py`.
"""

from dpreg.cli.main import main

main()
