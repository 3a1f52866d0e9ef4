"""Game files: reading, trust, the built-in ones."""
