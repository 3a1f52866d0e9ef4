"""pass@k, pass^k, the sharpening tax and PTGS, from success counts.  Works alone on anybody's counts."""
