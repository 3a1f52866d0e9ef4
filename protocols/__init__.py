"""Experiment designs, one module each."""
