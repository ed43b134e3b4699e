"""Coefficients and their uncertainty from noisy moments."""
