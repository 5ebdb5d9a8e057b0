"""What axe-core finds on pages, in a headless Chromium: `make accessibility` after `make demo`, or by hand

    python -m tests.accessibility.check_pages --axe axe.min.js [PAGE.html ...]

PAGE.html: pages in files. Without any: all that the tool makes of the demo, one of each kind: the plan, the report of the
run, the lineage of a table, a reading, the certificate, the answer to the person, and the pages of `pii-tracer serve`.
Ends with 1 where axe-core finds something serious or critical.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any
from urllib.request import urlopen

BAD = ("serious", "critical")
STATE = Path(".pii-tracer").resolve()
DEMO = STATE / "demo"
COMMAND = str(Path(sys.executable).with_name("pii-tracer"))
_LOOK = """
<script>{axe}</script>
<script>
document.querySelectorAll("details").forEach(one => one.open = true);
axe.run(document, {{resultTypes: ["violations"]}}).then(found => {{
  const told = found.violations.map(v => ({{id: v.id, impact: v.impact, help: v.help,
    nodes: v.nodes.slice(0, 3).map(n => n.html.slice(0, 160))}}));
  const into = document.createElement("pre");
  into.id = "axe-told"; into.textContent = JSON.stringify({{told, rules: found.passes.length}});
  document.body.appendChild(into);
}});
</script>
"""
_TOLD = re.compile(r'<pre id="axe-told">(.*?)</pre>', re.DOTALL)
_POLICY = re.compile(r'<meta[^>]+http-equiv="Content-Security-Policy"[^>]*>', re.IGNORECASE)
_LINK = re.compile(r'href="(/[^"#?]*)"')


def look_at(page: str, axe: str, browser: str, base: str | None = None) -> dict[str, Any]:
    """Of one page: `told`, what is wrong; `rules`, how many were kept. base: where its style sheet comes from."""
    text = _POLICY.sub("", page)
    if base:
        text = text.replace("<head>", f'<head><base href="{base}">', 1)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "page.html"
        file.write_text(text.replace("</body>", _LOOK.format(axe=axe) + "</body>", 1))
        words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={scratch}/profile"]
        words += ["--window-size=1280,1000", "--virtual-time-budget=20000", "--dump-dom", file.as_uri()]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    found = _TOLD.search(done.stdout)
    if found is None:
        raise SystemExit("axe-core did not end on a page; is the browser a Chromium, and the file axe.min.js?")
    answer: dict[str, Any] = json.loads(unescape(found[1]))
    return answer


def of_demo(scratch: Path) -> Iterator[Path]:
    """The pages that commands write of the demo's estate and its newest run."""
    if not (runs := sorted((STATE / "runs").glob("*/report.html"), key=lambda page: page.stat().st_mtime)):
        raise SystemExit(f"there is no run in {STATE}: run `make demo` first")
    estate, run, state = DEMO / "estate", runs[-1].parent.name, ("--state", str(STATE))
    lineage = [COMMAND, "trace", "lake.prod.payments", *state, "--format", "html"]
    (scratch / "trace.html").write_bytes(subprocess.run(lineage, cwd=estate, capture_output=True, check=True).stdout)
    reading = ["readiness", "--state", str(scratch / "state"), "--out", str(scratch / "readiness.html")]
    certificate = ["attest", "certificate", run, *state, "--out", str(scratch / "certificate.html")]
    answer = ["attest", "answer", run, "--all", *state, "--out", str(scratch)]
    for words in (reading, certificate, answer):
        subprocess.run([COMMAND, *words], cwd=estate, capture_output=True, check=False)
    yield from (DEMO / "erasure.html", runs[-1])
    found = sorted(scratch.glob("*.html"))
    if len(found) != 4:
        raise SystemExit(f"not every command made its page, only {[page.name for page in found]}")
    yield from found


@contextmanager
def served() -> Iterator[str]:
    """The pages of the demo's state folder; their address."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
    words = [COMMAND, "serve", "--state", str(STATE), "--plans", str(DEMO), "--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(100):
                with socket.socket() as door:
                    if door.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.send_signal(signal.SIGINT)


def reached(address: str) -> Iterator[tuple[str, str]]:
    """Each kind of page once: its path and text."""
    waiting, kinds = ["/"], set[str]()
    while waiting:
        path = waiting.pop(0)
        kind = re.sub(r"/[0-9a-f]{16}\b", "/…", path)
        if kind in kinds or path.startswith("/static") or path == "/favicon.ico":
            continue
        kinds.add(kind)
        with urlopen(address + path) as answer:
            text = answer.read().decode()
        waiting += map(unescape, _LINK.findall(text))
        yield path, text


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--axe", type=Path, required=True)
    parser.add_argument("pages", nargs="*", type=Path)
    given = parser.parse_args()
    axe, browser, bad, seen = given.axe.read_text(), os.environ.get("CHROMIUM", "chromium"), 0, 0

    def tell(name: str, page: str, base: str | None = None) -> None:
        nonlocal bad, seen
        found, seen = look_at(page, axe, browser, base), seen + 1
        serious = [one for one in found["told"] if one["impact"] in BAD]
        bad += len(serious)
        print(f"{name}: {found['rules']} rules kept, {len(found['told'])} not, {len(serious)} of them serious")
        for one in found["told"]:
            print(f"  {one['impact']}: {one['id']}: {one['help']}")
            for node in one["nodes"]:
                print(f"    {node}")

    for file in given.pages:
        tell(file.name, file.read_text())
    if not given.pages:
        with tempfile.TemporaryDirectory() as scratch:
            for file in of_demo(Path(scratch)):
                tell(file.name, file.read_text())
        with served() as address:
            for path, text in reached(address):
                tell(path, text, address + "/")
    print(f"{seen} pages, {bad} serious")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
