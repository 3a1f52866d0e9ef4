"""The report of the sharpening tax over many pairs, for the terminal, the page and the JSON twin."""
