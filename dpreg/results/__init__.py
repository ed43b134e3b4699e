"""Frozen results: released numbers and public facts, never rows."""
