"""Models' scores: exact integers, whatever the floating point on the way did."""
