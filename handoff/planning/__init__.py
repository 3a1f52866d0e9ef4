"""Planning a study: how many tasks and seed slots it needs."""
