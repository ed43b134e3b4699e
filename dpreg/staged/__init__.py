"""The same moments, looked at several times, each time in coordinates that fit better."""
