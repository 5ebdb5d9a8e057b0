"""How names of tables are written in SQL."""

TABLE = r"(?:[^\s`();,\"\[]|`[^`]*`|\"[^\"]*\"|\[[^\]]*\])+"
"""A table's name as written: dotted, with quoted parts."""
