"""Generates new games in the official format."""
