"""How many tasks and seeds a study needs."""
