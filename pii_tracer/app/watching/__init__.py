"""What a run tells of itself in numbers: the time left, and metrics."""
