"""Where the time of the tests goes: `python -m tests.benchmarks.times_of_tests REPORT.xml…`.

REPORT: what `pytest --junitxml` writes. Prints Markdown: seconds of workers by room, and by file, with what a file's first
test waited for (sessions, servers, estates that its fixtures build).
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

FILES = 30
"""Files that are listed."""


def table(reports: Sequence[Path]) -> Iterator[str]:
    """The lines of both tables."""
    times: dict[str, list[float]] = defaultdict(list)
    for report in reports:
        for case in ET.parse(report).getroot().iter("testcase"):
            times[_file(case.get("classname", ""))].append(float(case.get("time", 0)))
    rooms: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for file, seconds in times.items():
        room = "/".join(file.split("/")[:-1])
        rooms[room] += round(sum(seconds))
        tests[room] += len(seconds)
    yield f"{sum(tests.values())} tests, {sum(rooms.values())} seconds of workers"
    yield "\n| room | tests | seconds |\n|---|---|---|"
    for room, seconds_of in rooms.most_common():
        if seconds_of >= 10:
            yield f"| `{room}` | {tests[room]} | {seconds_of} |"
    yield "\n| file | tests | seconds | of them the longest |\n|---|---|---|---|"
    for file, seconds in sorted(times.items(), key=lambda item: -sum(item[1]))[:FILES]:
        yield f"| `{file}` | {len(seconds)} | {sum(seconds):.0f} | {max(seconds):.0f} |"


def _file(name: str) -> str:
    """`tests/run/test_x` for `tests.run.test_x.TestClass`."""
    return "/".join(part for part in name.split(".") if not part[:1].isupper())


if __name__ == "__main__":
    for line in table([Path(name) for name in sys.argv[1:]]):
        print(line)
