"""The Jinja environment of all HTML reports: autoescape on, unknown names are errors, nothing invisible passes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pii_tracer.common.plurals import counted
from reports import wording
from reports.escape import visible


def _seen(value: Any) -> Any:
    # strings of the templates themselves are Markup or template data; only values from outside come here as str
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The one environment; templates are part of the package."""
    made = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["counted"] = counted
    for name in ("number", "listed", "money", "size", "day", "minute", "clock", "span", "slack"):
        made.filters[name] = getattr(wording, name)
    made.filters["words"] = lambda value: str(value).replace("_", " ")
    return made


def render_html(template: str, **values: Any) -> str:
    """One self-contained page: no script, no request to anywhere (the page's own policy forbids both)."""
    return environment().get_template(template).render(**values)
