"""What doctor says of Java, by the Java that is there, and of tickets."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from pii_tracer.app.installation_checks import Level, examine


@pytest.mark.parametrize(
    ("printed", "level", "shown"),
    [
        ('openjdk version "17.0.9" 2025-10-17', Level.OK, 'openjdk version "17.0.9" 2025-10-17'),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.9"', Level.OK, 'openjdk version "17.0.9"'),
        ('openjdk version "8.0.1"', Level.WARNING, 'openjdk version "8.0.1"'),
        ("something else", Level.WARNING, "unknown"),
    ],
)
def test_the_version_of_java_is_the_line_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, level: Level, shown: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{printed}\nEND\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (found,) = [one for one in examine(tmp_path / "pii-tracer.yaml") if one.what == "Java"]
    assert (found.level, found.detail) == (level, shown)


def test_a_ticket_of_each_principal_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class GSSError(Exception):
        pass

    def credentials(*, name: str, usage: str) -> SimpleNamespace:
        if name.startswith("none"):
            raise GSSError
        return SimpleNamespace(lifetime=7260)

    kinds, errors = SimpleNamespace(kerberos_principal=1), SimpleNamespace(GSSError=GSSError)
    library = SimpleNamespace(Credentials=credentials, Name=lambda name, kind: name, NameType=kinds, exceptions=errors)
    monkeypatch.setitem(sys.modules, "gssapi", library)
    name_nodes = [
        {"namenode": f"hdfs://{name}:8020", "webhdfs": f"https://{name}:9871", "kerberos": f"{name}@EXAMPLE.COM"}
        for name in ("some", "none")
    ]
    estate = {"version": 1, "estate": "e", "environment": "local", "catalogs": {}, "roots": ["."], "lineage": {}}
    subject = {"name": "user", "source": "s", "key": "id"}
    (tmp_path / "pii-tracer.yaml").write_text(yaml.safe_dump({**estate, "subjects": [subject], "hdfs": name_nodes}))
    none, some = [one for one in examine(tmp_path / "pii-tracer.yaml") if one.what == "Kerberos"]
    assert (some.level, some.detail) == (Level.OK, "some@EXAMPLE.COM: a ticket for 121 more minutes")
    assert (none.level, none.detail) == (Level.MISSING, "none@EXAMPLE.COM: NoTicket")
    assert "kinit none@EXAMPLE.COM" in none.mend
