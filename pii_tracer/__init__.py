"""pii-tracer: PII lineage tracer and deletion planner for lakehouses."""

__version__ = "0.1.0"
