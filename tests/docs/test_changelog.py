"""The changelog: the version in the code is its newest release, and each release fits a screen."""

from __future__ import annotations

import re
from datetime import date

from packaging.version import Version

from pii_tracer import __version__
from tests.docs.prose import ROOT

SCREEN = 40
"""Lines of a release, its heading included."""
ARCHIVE = ROOT / "docs" / "changelog-archive"


def releases() -> dict[str, tuple[date, list[str]]]:
    """By version, in the order of the page: its day, and its lines."""
    page = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    parts = re.split(r"(?m)^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", page)[1:]
    return {
        version: (date.fromisoformat(day), text.strip().splitlines())
        for version, day, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


def test_the_code_has_the_version_of_the_newest_release() -> None:
    assert next(iter(releases())) == __version__


def test_releases_stand_newest_first_below_what_is_not_released() -> None:
    page = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^## \[(.*?)\]", page) == ["Unreleased", *releases()]
    assert sorted(releases(), key=Version, reverse=True) == list(releases())
    days = [day for day, _ in releases().values()]
    assert sorted(days, reverse=True) == days


def test_a_release_fits_a_screen_and_has_its_details_in_the_archive() -> None:
    for version, (_, lines) in releases().items():
        assert len(lines) < SCREEN, version
        assert (ARCHIVE / f"{version}.md").is_file()
        assert f"docs/changelog-archive/{version}.md" in "\n".join(lines)
        assert {line for line in lines if line.startswith("### ")} <= {"### Added", "### Changed", "### Fixed"}
