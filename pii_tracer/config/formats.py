"""Names of formats in the estate file: of those alone that an installed adapter knows, or the tool itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from pii_tracer.common import plugins
from pii_tracer.model.datasets import Format


def _installed(name: Format) -> Format:
    known = plugins.names("pii_tracer.formats")
    if name.value not in known:
        raise ValueError(f"no installed adapter knows this format; known are {', '.join(known)}")
    return name


InstalledFormat = Annotated[Format, AfterValidator(_installed)]
"""A table format of which an adapter is installed."""
