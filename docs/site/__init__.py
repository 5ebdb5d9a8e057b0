"""What the documentation's site needs beside its pages: hooks of MkDocs, a theme, a check of what was built."""
