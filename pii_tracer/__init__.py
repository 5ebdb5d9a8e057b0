"""pii-tracer: PII lineage tracer and deletion planner for lakehouses."""

import csv

__version__ = "0.4.0"

# a cell may hold a whole document; Python ends the file at one of 128 kB. A quote that nobody closes must still end
csv.field_size_limit(64 * 1024 * 1024)
