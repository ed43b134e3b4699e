"""Planning a private release before any data are touched."""

from dpreg.planning.planner import plan, plan_glm
from dpreg.planning.results import Plan, RegressionPlan

__all__ = ["Plan", "RegressionPlan", "plan", "plan_glm"]
