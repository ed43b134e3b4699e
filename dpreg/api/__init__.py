"""Public calls: check arguments, make a request, wire the rooms."""
