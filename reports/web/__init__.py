"""Drawings of the pages of `pii-tracer serve`."""
