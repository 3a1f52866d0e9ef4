"""Reports: terminal tables, one self-contained HTML page, and their JSON twin."""

from __future__ import annotations
