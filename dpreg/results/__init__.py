"""Frozen results: released numbers and public facts, never rows."""

from dpreg.paths import catalogue as catalogue
from dpreg.paths import packaged as packaged
