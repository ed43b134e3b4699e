"""Planning a private selection before any data are touched."""

from dpreg.planning.planner import plan
from dpreg.planning.results import Plan

__all__ = ["Plan", "plan"]
