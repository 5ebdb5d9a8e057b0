"""The estate file's part about requests: where they are kept, if not in the state folder."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator


def _without_password(url: str) -> str:
    if not re.match(r"postgresql://\S+$", url):
        raise ValueError("write it as postgresql://user@host:5432/database")
    place, _, options = url.partition("?")
    user = place.removeprefix("postgresql://").rpartition("@")[0]
    if ":" in user or re.search(r"(?:^|&)(?:ssl)?passw", options, re.IGNORECASE):
        raise ValueError(
            "the address must not contain a password; give the password in PGPASSFILE, ~/.pgpass or PGPASSWORD"
        )
    return url


RequestStoreUrl = Annotated[str, AfterValidator(_without_password)]
"""A PostgreSQL database as libpq's URL names it, without a password."""
