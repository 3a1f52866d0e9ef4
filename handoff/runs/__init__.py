"""The run folder: its format, reading it, writing it."""
