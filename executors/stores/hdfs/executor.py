"""The HDFS executor: which step is done by which of its parts, each over WebHDFS."""

from __future__ import annotations

from contextlib import AbstractContextManager

from executors.context import ExecutionContext
from executors.executor_parts import PartKind, PartsExecutor, as_run_errors
from executors.stores.hdfs.file_rewrite import Rewriting
from executors.stores.hdfs.kept_files import DeletingFiles, DeletingSnapshot
from executors.stores.hdfs.step_base import FilesParameters, RewriteParameters, SnapshotParameters
from pii_tracer.model.actions import Action


class HdfsExecutor(PartsExecutor[ExecutionContext]):
    """Executor `hdfs`. What HDFS refuses is an error of the run."""

    name = "hdfs"
    title = "the HDFS executor"
    kinds = {
        Action.HDFS_REWRITE: PartKind(RewriteParameters, Rewriting),
        Action.HDFS_DELETE_FILES: PartKind(FilesParameters, DeletingFiles),
        Action.HDFS_DELETE_SNAPSHOT: PartKind(SnapshotParameters, DeletingSnapshot),
    }

    def refusals(self) -> AbstractContextManager[None]:
        """Errors of HDFS."""
        return as_run_errors()
