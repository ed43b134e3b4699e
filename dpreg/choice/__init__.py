"""Which terms a released look shows to matter: tests of released numbers, at no cost in privacy."""

from dpreg.choice.evidence import FLAT, Evidence, Released, priors
from dpreg.choice.rule import Choice, choose

__all__ = ["FLAT", "Choice", "Evidence", "Released", "choose", "priors"]
