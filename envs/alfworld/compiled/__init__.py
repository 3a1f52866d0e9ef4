"""The compiled engine: a game as bits and look-ups."""
