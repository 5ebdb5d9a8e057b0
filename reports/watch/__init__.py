"""Who listens to a command: the terminal, a log of JSON lines, OpenTelemetry."""
