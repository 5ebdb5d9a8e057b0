"""Looks for a person in what the program leaves: written for the tests alone, without a line of the program's own search.

Every form is searched in every file, whatever it is called: text in any case, URL and JSON escapes, base64 at its three
offsets, hexadecimal, UTF-16, and plain digests. Archives and tables are opened as far as that needs no code of ours.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus

_SEALED = (".sealed", ".key")
"""The persons' values, encrypted, and the key to them: what they are for."""


@dataclass(frozen=True)
class Person:
    """values: whole values that stand for the person wherever they are. numbers: short ones, as words of their own.

    longer: values of others in which a number is a word of its own.
    """

    values: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    longer: tuple[str, ...] = ()


def forms(value: str) -> dict[bytes, str]:
    """Bytes that stand for a value, with their names."""
    found: dict[bytes, str] = {}
    for text in dict.fromkeys((value, value.lower(), value.upper(), value.strip())):
        raw = text.encode()
        found |= {raw: "text", raw.hex().encode(): "hex", raw.hex().upper().encode(): "hex"}
        found |= {quote(text, safe="").encode(): "url", quote_plus(text, safe="").encode(): "url"}
        found |= {quote(quote(text, safe=""), safe="").encode(): "url twice"}
        found |= {
            json.dumps(text)[1:-1].encode(): "json",
            text.encode("utf-16-le"): "utf-16",
            text.encode("utf-16-be"): "utf-16",
        }
        for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512"):
            digest = hashlib.new(name, raw).digest()
            found |= {digest.hex().encode(): name, digest.hex().upper().encode(): name}
            found |= {base64.b64encode(digest).rstrip(b"="): name, digest: name}
    return found


def _in_base64(raw: bytes, data: bytes) -> bool:
    """Whether base64 in `data` decodes to something with `raw` in it, at any of the three offsets.

    A part of the value alone is no find: six digits of a telephone number stand in many a digest.
    """
    for start in range(3):
        # only whole groups of three bytes: the others depend on what stands beside
        inner = raw[start : start + (len(raw) - start) // 3 * 3]
        for form in {base64.b64encode(inner), base64.urlsafe_b64encode(inner)}:
            # matches may overlap, and a value's first group begins up to two bytes before it
            for found in re.finditer(b"(?=(" + re.escape(form) + b"[A-Za-z0-9+/_-]{0,4}))", data):
                before = re.search(b"(?:[A-Za-z0-9+/_-]{4})?$", data[max(0, found.start() - 4) : found.start()])
                text = (before[0] if before else b"") + found[1]
                text = text[: len(text) - (len(text) % 4 == 1)].translate(bytes.maketrans(b"-_", b"+/"))
                if raw in base64.b64decode(text + b"=" * (-len(text) % 4)):
                    return True
    return False


def leaks(person: Person, paths: Iterable[Path]) -> list[str]:
    """Where the person stands: `file: form`. Folders are searched whole, but for what is sealed."""
    wanted = {data: name for value in person.values for data, name in forms(value).items()}
    for number in person.numbers:
        wanted |= {
            data: name
            for data, name in forms(number).items()
            if name not in ("text", "hex", "url", "json", "utf-16", "url twice")
        }
    packed = {
        text.encode() for value in (*person.values, *person.numbers) for text in (value, value.lower(), value.upper())
    }
    packed = {raw for raw in packed if len(raw) >= 6}
    alone = [_alone(number) for number in person.numbers]
    found = []
    for path in _files(paths):
        for data in _opened(path.read_bytes()):
            rest = data
            for value in person.longer:
                rest = _alone(value).sub(b" ", rest)
            found += [f"{path}: {name}" for form, name in wanted.items() if form in data]
            found += [f"{path}: base64" for raw in packed if _in_base64(raw, data)]
            found += [f"{path}: number" for number in alone if number.search(rest)]
        found += [f"name of {path}: {name}" for form, name in wanted.items() if form in path.name.encode()]
    return sorted(set(found))


def _alone(value: str) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![0-9A-Za-z.])" + re.escape(value.encode()) + rb"(?![0-9A-Za-z])")


def watched_spark(folder: Path) -> dict[str, str]:
    """Environment in which Spark notes every event in `folder/events`, and what the engine prints is in `folder/tmp`."""
    (folder / "events").mkdir(parents=True)
    (folder / "tmp").mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.sql.maxPlanStringLength": "1000000",
    }
    (folder / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    (folder / "log4j2.properties").write_text(_LOG4J)
    return {"SPARK_CONF_DIR": str(folder), "TMPDIR": str(folder / "tmp")}


_LOG4J = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.console.type = Console
appender.console.name = stderr
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c: %m%n%ex
"""


def _files(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        found += [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return [path for path in found if not path.name.endswith(_SEALED)]


def _opened(data: bytes) -> list[bytes]:
    """A file's bytes, and what they are the packing of."""
    if data[:4] == b"PAR1":
        import pyarrow.parquet as pq

        return [data, str(pq.read_table(io.BytesIO(data)).to_pylist()).encode()]
    if data[:2] == b"\x1f\x8b":
        return [data, gzip.decompress(data)]
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [data, *(archive.read(name) for name in archive.namelist())]
    return [data]
