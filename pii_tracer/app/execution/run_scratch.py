"""The scratch folder of a run: what dead runners left is wiped before anything is done, and its own at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.common.scratch_folders import leftovers, scratch_folder, system_temporary, temporary_files_in, wipe
from pii_tracer.model.errors import RunError


@contextmanager
def run_scratch(folder: RunFolder, conf: Mapping[str, str]) -> Iterator[None]:
    """Inside, temporary files of the run lie in the scratch folder of this process. Where they lay is written down:
    another process of the run may have another temporary folder. conf: what the estate file tells Spark.

    Raises:
        RunError: the folder cannot be made.
    """
    from executors.engine.scratch_settings import scratch_places

    written = folder.path / "scratch.json"
    before: set[str] = set()
    with suppress(OSError, ValueError):
        before = {str(place) for place in json.loads(written.read_bytes())}
    places = {str(system_temporary()), *map(str, scratch_places(conf))}
    wipe(leftovers(Path(place) for place in before | places))
    try:
        own = scratch_folder() / "python"
        own.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"the scratch folder cannot be made: {error.strerror or type(error).__name__}",
            where=str(error.filename),
            todo="set TMPDIR to a writable folder with free space, then run `pii-tracer resume`",
        ) from None
    write_atomic(written, json.dumps(sorted(before | places)).encode())
    with temporary_files_in(own):
        yield
