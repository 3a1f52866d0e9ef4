"""What ships with the project: built-in games and reference results, each with a manifest."""
