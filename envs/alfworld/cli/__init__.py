"""The commands ``handoff games`` and ``handoff distance``."""
