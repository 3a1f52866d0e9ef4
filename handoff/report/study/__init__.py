"""The report of a verified-frontier run."""
