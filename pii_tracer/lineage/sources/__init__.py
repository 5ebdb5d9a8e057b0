"""Where lineage comes from: event files, the project's own event log and what fills it, dbt, query logs."""
