"""N independent rollouts per task."""
