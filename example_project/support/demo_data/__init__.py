"""Invents a support desk: the same one for the same seed, on every machine."""
