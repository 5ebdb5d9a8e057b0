"""Read-only views of a state folder for people who look at it in a browser: nothing here writes, locks or connects."""
