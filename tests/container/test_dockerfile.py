"""The Dockerfile: an image without root, from a named base, with what an installation needs and nothing else of a checkout."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.container.build_steps import Machine, build, call, step
from tests.container.dockerfile import DOCKERFILE, IGNORED, ROOT, copied, instructions, let_in

STEPS = instructions(DOCKERFILE.read_text(encoding="utf-8"))
LAST = [one for one in STEPS if one.stage == STEPS[-1].stage]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_program_is_run_by_a_user_with_a_number_who_is_not_root() -> None:
    user = [one.value for one in LAST if one.name == "USER"][-1]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert [one.words for one in LAST if one.name == "ENTRYPOINT"] == [("pii-tracer",)]


def test_bases_are_slim_and_of_a_named_version() -> None:
    bases = {one.value.split()[0] for one in STEPS if one.name == "FROM"}
    assert all(re.fullmatch(r"python:3\.1[0-2]-slim-\w+", base) for base in bases), bases


def test_commands_are_lists_of_words_but_for_the_system_s_packages() -> None:
    shell = [one.value for one in STEPS if one.name == "RUN" and one.words is None]
    assert all(value.startswith("apt-get update && apt-get install --yes --no-install-recommends ") for value in shell)
    assert len(shell) < 2
    assert {one.name for one in STEPS} <= {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "ENTRYPOINT", "CMD"}


def test_what_is_copied_is_let_in_and_nothing_else_is() -> None:
    sources = {name for one in STEPS if one.name == "COPY" for name in copied(one)[1] if copied(one)[0] is None}
    assert sources == let_in(IGNORED.read_text(encoding="utf-8"))
    (listed,) = re.findall(r"(?m)^include = (\[.*\])$", PROJECT)  # Python 3.10 has no reader of TOML
    packages = {name.split(".")[0] for name in json.loads(listed)}
    assert packages | {"pyproject.toml", "constraints.txt", "README.md", "LICENSE"} == sources
    assert all((ROOT / name).exists() for name in sources)


def test_the_extras_exist_and_leave_out_what_only_developers_need() -> None:
    (install,) = [one.words for one in STEPS if one.words and "install" in one.words]
    (extras,) = [re.findall(r"[\w-]+", word) for word in install if word.startswith(".[")]
    known = set(re.findall(r"(?m)^([a-z-]+) = \[", PROJECT.split("[project.optional-dependencies]")[1].split("\n[")[0]))
    assert set(extras) <= known
    # demo: replaced by Java alone. connect: Spark runs elsewhere. fast, kerberos: build from source
    assert known - set(extras) == {"dev", "demo", "connect", "fast", "kerberos"}
    assert install[install.index("-c") : install.index("-c") + 2] == ("-c", "constraints.txt")


@pytest.mark.parametrize("line", ["RUN echo a", "WORKDIR /a"])
def test_an_instruction_before_the_first_stage_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="before the first FROM"):
        instructions(line)


def made(tmp_path: Path, text: str) -> Machine:
    machine = Machine(tmp_path / "image")
    for one in instructions("FROM base\n" + text):
        step(machine, one)
    return machine


def test_a_step_runs_below_the_folder_with_the_image_s_paths(tmp_path: Path) -> None:
    machine = made(
        tmp_path,
        'WORKDIR /src\nRUN ["python", "-c", "import pathlib; pathlib.Path(\'a\').touch()"]\n'
        'RUN ["python", "-c", \\\n  "import shutil, sys; shutil.copy(*sys.argv[1:])", "/src/a", "/src/b"]\n'
        "RUN apt-get update\nUSER 1:1",
    )
    assert (tmp_path / "image" / "src" / "b").exists()
    assert machine.not_run == ["apt-get update"]
    assert machine.place("/usr/bin/env") == Path("/usr/bin/env")


def test_what_the_context_leaves_out_and_unknown_instructions_are_refused(tmp_path: Path) -> None:
    for text in ("COPY tests /src/tests", "ADD https://a.example/x /x", "COPY --from=build /a /b"):
        with pytest.raises(ValueError, match=r"COPY|ADD"):
            made(tmp_path, text)


def test_a_program_of_root_is_not_called(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="root"):
        call(made(tmp_path, 'ENTRYPOINT ["python"]'))


def test_the_context_is_copied_without_what_it_leaves_out(tmp_path: Path) -> None:
    """The file's own steps, up to the first that runs something."""
    for one in build(Machine(tmp_path / "image")):
        if one.name == "RUN":
            break
    assert (tmp_path / "image" / "src" / "pii_tracer" / "__init__.py").exists()
    assert not list((tmp_path / "image").rglob("__pycache__"))
