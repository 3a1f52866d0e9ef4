"""Environments that ship with the toolkit, one package each."""

from __future__ import annotations
