"""Verified-frontier handoff."""
