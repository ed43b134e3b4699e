"""Which terms a released law supports: a choice made without drawing any more privacy noise."""
