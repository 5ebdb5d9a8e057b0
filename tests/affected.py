"""Names the test files near what changed since a commit: `python -m tests.affected [COMMIT]`.

A test file is near when it changed itself, or when it, or a helper in `tests` that it uses, imports a changed module
directly. A change of what every test uses (`conftest.py`, `pyproject.toml`) names the checks of the house alone: then
only the whole suite can tell.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("pii_tracer", "planners", "executors", "reports", "sample_lineage", "tests")
ALWAYS = "tests/test_architecture.py"


def changed_files(commit: str, root: Path = ROOT) -> list[str]:
    """Paths of files that differ from a commit, and of new ones; what was deleted is left out."""
    asked = (["diff", "--name-only", "--diff-filter=d", commit], ["ls-files", "--others", "--exclude-standard"])
    found = (subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True) for words in asked)
    return sorted({line for answer in found for line in answer.stdout.splitlines()})


def module_of(path: str) -> str:
    """The dotted name of a Python file."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def near(changed: Iterable[str], graph: grimp.ImportGraph) -> list[str]:
    """Test files near changed files, sorted; those that check the house are always among them."""
    modules = {module_of(path) for path in changed if path.endswith(".py")} & graph.modules
    seen = set(modules)
    waiting = list(modules)
    while waiting:
        for importer in graph.find_modules_that_directly_import(waiting.pop()):
            if importer.startswith("tests.") and importer not in seen:
                seen.add(importer)
                waiting.append(importer)
    tests = {name.replace(".", "/") + ".py" for name in seen if name.rpartition(".")[2].startswith("test_")}
    return sorted(tests | {ALWAYS})


def main() -> int:
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    print(*near(changed_files(commit), grimp.build_graph(*ROOMS, cache_dir=None)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
