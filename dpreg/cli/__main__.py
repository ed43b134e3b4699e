"""Run the command as ``python -m dpreg.cli``."""

from dpreg.cli.main import main

main()
