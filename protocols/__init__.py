"""Experiment designs, one package each.

A new design is a folder here, whose ``protocol.py`` derives from :class:`handoff.protocols.protocol.Protocol`, and a
line in ``registry.py``.  ``api.py`` is what ``import handoff`` offers.
"""

from __future__ import annotations
