"""Change the rules of single modules one place at a time, and see which changes no test notices: minutes a module.

`make mutants MODULES=verdicts` runs this in the environment of mutmut, which makes the changed code. Everything is
imported and collected once. Each change runs in a fork of its own with the tests that call the changed function, the
quickest first, up to the first that fails. `docs/mutants.md` has the results.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import io
import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

TESTS: dict[str, tuple[str, ...]] = {
    "pii_tracer/review/approval.py": (
        "review/test_approval_fields.py",
        "review/test_review.py",
        "review/test_sshsig.py",
    ),
    "pii_tracer/review/drift.py": ("review/test_review.py", "review/test_new_readers.py", "run/test_runner.py"),
    "pii_tracer/run/journal.py": ("run/test_journal.py", "run/test_journal_machine.py", "run/test_faults.py"),
    "pii_tracer/run/journal_truncation.py": ("run/test_journal_truncation.py",),
    "pii_tracer/verify/verdicts.py": (
        "verify/test_verdicts.py",
        "verify/test_bytes.py",
        "verify/test_kept.py",
        "verify/test_bystanders.py",
        "proof/witness/test_what_is_gone.py",
    ),
    "pii_tracer/verify/hold_allowances.py": ("verify/test_hold_allowances.py", "verify/test_kept.py"),
    "planners/copies/match_key_resolution.py": (
        "planners/copies/test_missing_persons.py",
        "planners/copies/test_keys.py",
        "planners/copies/test_lookalikes.py",
        "planners/copies/test_numbers_of_others.py",
        "planners/copies/test_former_rows.py",
        "planners/locate/test_same_key.py",
    ),
    "planners/copies/person_rows.py": (
        "planners/copies/test_keys_in_batches.py",
        "planners/copies/test_others.py",
        "planners/copies/test_elements.py",
    ),
    "planners/copies/row_number_columns.py": ("planners/copies/test_row_number_columns.py",),
    "planners/gaps/unexplained_rows.py": (
        "planners/gaps/test_unexplained_rows.py",
        "planners/copies/test_iceberg_parts.py",
    ),
    "planners/gaps/remaining_values.py": ("planners/gaps", "planners/copies/test_former_rows.py"),
    "planners/schedule/step_dates.py": ("planners/schedule", "planners/stores"),
    "planners/schedule/step_order.py": ("planners/schedule", "planners/copies/test_nessie.py"),
    "planners/holds/hold_rules.py": ("planners/holds", "planners/copies/test_keytables.py"),
    "planners/holds/column_holds.py": ("planners/holds/test_column_rules.py", "planners/holds/test_column_holds.py"),
}
"""By module the quick tests that are about it."""

LONGEST = 3.0
"""Seconds; tests that take longer are left out."""
AT_ONCE = 2
CALM = ["-p", "no:randomly", "-p", "no:cacheprovider", "-q", "-m", "not spark and not e2e and not slow and not nightly"]


class Forks:
    """In place of pytest's loop: every test once, to see what it calls; then every change in a fork."""

    def __init__(self, module: str, changes: Sequence[str]) -> None:
        self.module, self.changes = module, changes
        self.survivors: dict[str, str] = {}
        self.told = os.fdopen(os.dup(1), "w")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Found examples are not made small: that one fails is enough."""
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", settings.get_profile("few"), phases=phases)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        calling, lasted = self._calls(session.items)
        waiting = [(change, self._for(change, calling, lasted)) for change in self.changes]
        running: dict[int, str] = {}
        gc.freeze()
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                change, tests = waiting.pop(0)
                if not tests:
                    self._survives(change, "no test calls it")
                elif child := os.fork():
                    running[child] = change
                else:
                    _try(change, tests, sum(lasted[test.nodeid] for test in tests))
            if len(waiting) % 50 == 0:
                print(f"  {len(waiting)} to go", file=self.told, flush=True)
            if running:
                child, status = os.wait()
                change = running.pop(child)
                if status == 0:
                    self._survives(change, "no test fails")
        return True

    def _survives(self, change: str, why: str) -> None:
        self.survivors[change] = why
        print(f"  {change}: {why}", file=self.told, flush=True)

    def _for(self, change: str, calling: dict[str, list[pytest.Item]], lasted: dict[str, float]) -> list[pytest.Item]:
        tests = [t for t in calling[change.partition("__mutmut_")[0]] if lasted[t.nodeid] <= LONGEST]
        return sorted(tests, key=lambda test: lasted[test.nodeid])

    def _calls(self, items: Sequence[pytest.Item]) -> tuple[dict[str, list[pytest.Item]], dict[str, float]]:
        """Which tests call which functions, and how long they take."""
        state = importlib.import_module("mutmut.state").state()
        calling: dict[str, list[pytest.Item]] = defaultdict(list)
        lasted: dict[str, float] = {}
        os.environ["MUTANT_UNDER_TEST"] = "stats"
        state._stats.clear()
        for item, after in zip(items, [*items[1:], None], strict=True):
            begun = time.process_time()
            if not _passes(item, after):
                pytest.exit(f"{item.nodeid} fails with unchanged code", 1)
            lasted[item.nodeid] = time.process_time() - begun
            for function in state._stats:
                calling[function].append(item)
            state._stats.clear()
        os.environ["MUTANT_UNDER_TEST"] = ""
        return calling, lasted


def _passes(item: pytest.Item, after: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=after))


def _try(change: str, tests: Sequence[pytest.Item], lasted: float) -> None:
    """In a fork: run tests up to the first that fails. A change that loops ends with the clock's signal."""
    code = 0
    try:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, 10 + 5 * lasted)
        signal.alarm(int(120 + 30 * lasted))
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.environ["MUTANT_UNDER_TEST"] = change
        gc.disable()
        for test, after in zip(tests, [*tests[1:], None], strict=True):
            if not _passes(test, after):
                code = 1
                break
    except BaseException:
        code = 1
    os._exit(code)


def without_decorators(source: str) -> str:
    """The same code with properties made by a call: mutmut leaves decorated functions as they are."""
    lines = source.splitlines()
    for owner in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)):
        for node in owner.body:
            if isinstance(node, ast.FunctionDef) and [ast.unparse(d) for d in node.decorator_list] == ["property"]:
                lines[node.lineno - 2] = ""
                lines[node.lineno - 1] = lines[node.lineno - 1].replace(f"def {node.name}(", f"def get_{node.name}(")
                lines[(node.end_lineno or 0) - 1] += f"\n    {node.name} = property(get_{node.name})"
    return "\n".join(lines) + "\n"


def _changed_code(modules: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Make the changed code of modules in `mutants/`, beside all else as it is, and tell the names of the changes."""
    main = importlib.import_module("mutmut.__main__")
    write = main.write_all_mutants_to_file
    main.write_all_mutants_to_file = lambda *, source, **more: write(source=without_decorators(source), **more)
    importlib.import_module("mutmut.configuration").config().only_mutate = list(modules)
    Path("mutants").mkdir(exist_ok=True)
    with contextlib.redirect_stdout(io.StringIO()):
        main.copy_src_dir()
        main.copy_also_copy_files()
        main.setup_source_paths()
        main.create_mutants(AT_ONCE)
    for module in modules:
        yield module, list(json.loads(Path("mutants", f"{module}.meta").read_text())["exit_code_by_key"])


def main(names: Sequence[str]) -> None:
    """Try the changes of these modules, or of single functions (`verdicts:with_since`), in this order; of all where
    none is named."""
    os.environ.update(MUTANT_UNDER_TEST="mutant_generation", CI="true")
    by_name = {Path(module).stem: module for module in TESTS}
    wanted = [(by_name[name], function) for name, _, function in (text.partition(":") for text in names or by_name)]
    changes = dict(_changed_code([module for module, _ in wanted]))
    os.chdir("mutants")
    sys.modules.pop("tests", None)
    for module, function in wanted:
        child = os.fork()
        if not child:
            _of_module(module, [change for change in changes[module] if f"{function}__mutmut" in change])
        os.waitpid(child, 0)


def _of_module(module: str, changes: Sequence[str]) -> None:
    begun = time.monotonic()
    forks = Forks(module, changes)
    places = [f"tests/{place}" for place in TESTS[module]]
    code = pytest.main(["--rootdir=.", "--tb=short", *CALM, *places], plugins=[forks])
    noticed = len(changes) - len(forks.survivors)
    seconds = time.monotonic() - begun
    print(f"{module}: {len(changes)} changes, {noticed} noticed, {seconds:.0f} s, pytest ended with {code}", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
