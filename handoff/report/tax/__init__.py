"""The report of the sharpening tax."""
