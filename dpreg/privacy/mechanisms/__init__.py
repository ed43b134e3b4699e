"""Mechanisms: the only code that draws the noise that privacy rests on."""
