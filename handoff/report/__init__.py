"""Reports: terminal tables, one self-contained HTML page, and their JSON twin."""
