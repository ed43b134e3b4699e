"""Looks: private releases of score and information at public coordinates, whatever the model."""
