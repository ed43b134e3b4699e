"""Curator-only studies: exact, not private, not for release."""
