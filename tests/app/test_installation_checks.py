"""What doctor says of Java, by the Java that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

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
