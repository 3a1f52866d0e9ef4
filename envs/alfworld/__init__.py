"""ALFWorld: adapter on textworld + alfworld, compiled engine, game discovery, game generator."""
