"""Budgets, sensitivities with their proofs, and the mechanisms that draw noise."""
