"""Draws from all 2^q models by searching a tree of them."""
