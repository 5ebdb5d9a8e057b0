"""What tells the format of a table in the AWS Glue Data Catalog."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GlueMarks:
    """Words of a table's parameters and its storage, in lower case; empty where it has none.

    provider: `spark.sql.sources.provider`. reader: the class of its input format.
    https://docs.aws.amazon.com/glue/latest/webapi/API_Table.html
    """

    provider: str
    table_type: str
    classification: str
    reader: str

    @property
    def words(self) -> tuple[str, ...]:
        """What names the format, as engines write it in one parameter or another."""
        return self.provider, self.table_type, self.classification
