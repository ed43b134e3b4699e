"""Planning a private release before any data are touched."""

from dpreg.planning.glm import GLMPlan, plan_glm
from dpreg.planning.glm_choice import GLMSelectionPlan
from dpreg.planning.planner import plan
from dpreg.planning.regression import RegressionPlan
from dpreg.planning.results import Plan

__all__ = ["GLMPlan", "GLMSelectionPlan", "Plan", "RegressionPlan", "plan", "plan_glm"]
