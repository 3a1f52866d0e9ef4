"""Environments that ship with the toolkit, one package each."""
