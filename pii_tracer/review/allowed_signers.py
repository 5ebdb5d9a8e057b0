"""OpenSSH's allowed signers file as the list of trusted approvers: whose keys count, for what, and until when.

Source: ssh-keygen(1), ALLOWED SIGNERS. The comment at the end of a line is the person's role, which OpenSSH has no
field for. What we do not support is refused, never overlooked: patterns, several names a line, certificates, times
without `Z`.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone

from pii_tracer.model.errors import ReviewError
from pii_tracer.review.ssh_signatures import NAMESPACE
from pii_tracer.review.trusted_keys import Approver

_FIELD = re.compile(r'(?:[^\s"]|"[^"]*")+')
_OPTION = re.compile(r'([A-Za-z-]+)(?:="([^"]*)")?(?:,|$)')
_KEY = re.compile(r"(ssh|ecdsa|sk)-[A-Za-z0-9@.-]+")
_FORMATS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}


def looks_like_signers(text: str) -> bool:
    """Whether a file is in this format rather than YAML, from its first line that says anything."""
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            fields = _FIELD.findall(line)[1:3]
            return any(_KEY.fullmatch(field) for field in fields)
    return False


def parse_signers(text: str, where: str) -> tuple[Approver, ...]:
    """The approvers of the file; keys that are given for other namespaces only are left out.

    Raises:
        ReviewError: a line that cannot be understood, or uses what is not supported.
    """
    found = (_line(line, f"{where}, line {number}") for number, line in enumerate(text.splitlines(), 1))
    return tuple(approver for approver in found if approver is not None)


def _line(line: str, where: str) -> Approver | None:
    line = line.strip()
    if not line or line.startswith("#"):
        return None
    fields = _FIELD.findall(line)
    options = {} if len(fields) > 1 and _KEY.fullmatch(fields[1]) else _options(fields, where)
    name, key, role = _parts(fields, 1 if not options else 2, where)
    spaces = options.pop("namespaces", None)
    if spaces is not None and NAMESPACE not in spaces.split(","):
        return None
    return Approver(
        name=name,
        role=role,
        public_key=key,
        valid_from=_time(options.pop("valid-after", None), where),
        valid_until=_time(options.pop("valid-before", None), where),
    )


def _options(fields: list[str], where: str) -> dict[str, str]:
    text = fields[1] if len(fields) > 1 else ""
    found, at = {}, 0
    while match := _OPTION.match(text, at):
        if match.end() == at:
            break
        found[match.group(1).lower()] = match.group(2) or ""
        at = match.end()
    unknown = sorted(found.keys() - {"namespaces", "valid-after", "valid-before"})
    if at != len(text) or not found or unknown:
        raise _error(f"the options are not understood or not supported: {', '.join(unknown) or 'unknown'}", where)
    return found


def _parts(fields: list[str], at: int, where: str) -> tuple[str, str, str]:
    name = fields[0].strip('"')
    if not name or set(name) & set("*?!,"):
        raise _error("each line must name exactly one person, without patterns", where)
    if len(fields) < at + 3:
        raise _error("the line lacks its key, or a role as its comment", where)
    return name, " ".join(fields[at : at + 2]), " ".join(fields[at + 2 :])


def _time(text: str | None, where: str) -> datetime | None:
    if text is None:
        return None
    form = _FORMATS.get(len(text) - 1)
    try:
        if form is None or not text.endswith("Z"):
            raise ValueError
        return datetime.strptime(text[:-1], form).replace(tzinfo=timezone.utc)
    except ValueError:
        raise _error("times must be written as YYYYMMDDZ or YYYYMMDDHHMM[SS]Z", where) from None


def _error(what: str, where: str) -> ReviewError:
    return ReviewError(what, where=where, todo='write: NAME namespaces="pii-tracer-approval" ssh-ed25519 AAAA… ROLE')
