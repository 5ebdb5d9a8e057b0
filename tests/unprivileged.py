"""Root is bound by no permissions, and tests run as root: as a user whom they bind, and in a folder that he can enter."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can enter too."""
    folder = Path(tempfile.mkdtemp()).resolve()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def unprivileged() -> Iterator[None]:
    """As a user whom permissions bind."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
