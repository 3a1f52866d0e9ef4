"""Checks of a run: its records against themselves, then against the environment."""
