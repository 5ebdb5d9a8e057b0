"""What Iceberg leaves in files beside the rows: metadata files, manifests and lists of them.

https://iceberg.apache.org/spec/#manifests
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pii_tracer.scan.decode.avro_container import open_container
from pii_tracer.scan.decode.table_traces import TableTraces

_MANIFEST = re.compile(r"(?:\Asnap-.*|\Aoptimized-m-.*|-m\d+)\.avro\Z")
"""As Iceberg names them, wherever `write.metadata.path` leads."""


class IcebergTraces(TableTraces):
    """Metadata as JSON and Avro; its paths are whole paths or URIs."""

    format = "iceberg"

    def is_metadata(self, parts: Sequence[str]) -> bool:
        return parts[-1].endswith(".metadata.json")

    def names_files(self, parts: Sequence[str]) -> bool:
        *folders, name = parts
        return bool(_MANIFEST.search(name)) or (folders[-1:] == ["metadata"] and name.endswith(".avro"))

    def named_files(self, parts: Sequence[str], data: memoryview) -> Iterator[str]:
        if self.names_files(parts):
            for record in open_container(data).records():
                path = record.get("manifest_path") or (record.get("data_file") or {}).get("file_path")
                if path:
                    yield str(path)


TRACES = IcebergTraces()
