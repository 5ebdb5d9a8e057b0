"""Pages in a real browser, looked at by axe-core."""
