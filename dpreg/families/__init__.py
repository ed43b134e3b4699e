"""Generalised linear models by looks: information and score at a fit that earlier looks located."""
