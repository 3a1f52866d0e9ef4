"""The two evaluators of a plan: eight commonsense checks and five hard ones."""
