"""A table format that only tests know: a folder with `.toy/table.json`, and a file of JSON lines for each version."""
