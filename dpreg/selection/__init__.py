"""Scores of models, the spaces they come from, and how a model is drawn."""
