"""Estimands of a crossing table with intervals.  Works alone on anybody's table."""
