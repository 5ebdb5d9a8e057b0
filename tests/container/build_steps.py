"""Run a Dockerfile's steps in a folder, where no builder is: `python -m tests.container.build_steps FOLDER`.

What the instructions make lies below FOLDER at the paths that the image has. RUN instructions in exec form are run with
these paths, a clean environment and this Python; those in shell form, and `useradd`, belong to the base image's system
and are listed as not run. At the end the entry point is called; by a user who may write nowhere, if root runs this.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.container.dockerfile import DOCKERFILE, IGNORED, ROOT, Instruction, copied, instructions, let_in

_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/var/", "/etc/")
_OF_THE_SYSTEM = {"useradd"}
NOBODY = 65534


@dataclass
class Machine:
    """What the instructions so far have made below a folder."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "root"
    entrypoint: tuple[str, ...] = ()
    not_run: list[str] = field(default_factory=list)

    def place(self, path: str) -> Path:
        """A path of the image, below the folder. The system's folders are this machine's own."""
        if not path.startswith("/"):
            path = f"{self.workdir.rstrip('/')}/{path}"
        return Path(path) if path.startswith(_SYSTEM) else self.root / path.lstrip("/")

    def words(self, words: tuple[str, ...]) -> list[str]:
        made = [str(self.place(word)) if word.startswith("/") else word for word in words]
        return [sys.executable, *made[1:]] if made[0] == "python" else made

    def environment(self) -> dict[str, str]:
        home = self.place("/home/tracer")
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "http", "HTTP", "no_"))}
        path = self.env.get("PATH", "/usr/local/bin:/usr/bin:/bin")
        made = {**self.env, "PATH": ":".join(str(self.place(part)) for part in path.split(":"))}
        # Java asks the system for the home folder, not HOME
        return {**kept, "HOME": str(home), "JAVA_TOOL_OPTIONS": f"-Duser.home={home}", **made}


def step(machine: Machine, instruction: Instruction) -> None:
    """Do one instruction.

    Raises:
        CalledProcessError: a command failed.
        ValueError: this script does not know the instruction, or what it copies is not let in.
    """
    name, value, words = instruction.name, instruction.value, instruction.words
    if name == "FROM":
        machine.env, machine.workdir, machine.user = {}, "/", "root"
    elif name == "WORKDIR":
        machine.workdir = value
        machine.place(value).mkdir(parents=True, exist_ok=True)
    elif name == "ENV":
        key, _, given = value.partition("=")
        machine.env[key] = given
    elif name == "USER":
        machine.user = value
    elif name == "COPY":
        copy(machine, instruction)
    elif name == "RUN" and (words is None or words[0] in _OF_THE_SYSTEM):
        machine.not_run.append(value)
    elif name == "RUN" and words is not None:
        machine.place("/home/tracer").mkdir(parents=True, exist_ok=True)
        cwd = machine.place(machine.workdir)
        subprocess.run(machine.words(words), cwd=cwd, env=machine.environment(), check=True)
    elif name == "ENTRYPOINT" and words is not None:
        machine.entrypoint = words
    elif name != "CMD":
        raise ValueError(f"{name} {value}: this script does not know it")


def copy(machine: Machine, instruction: Instruction) -> None:
    stage, sources, destination = copied(instruction)
    if stage is not None:
        if sources != [destination] or not machine.place(destination).exists():
            raise ValueError(f"COPY {instruction.value}: stages share one folder here, so the path has to stay")
        return
    allowed = let_in(IGNORED.read_text(encoding="utf-8"))
    there = machine.place(destination)
    for source in sources:
        if source not in allowed:
            raise ValueError(f"COPY {source}: .dockerignore keeps it out")
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, there, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / source, there)


def build(machine: Machine) -> Iterator[Instruction]:
    """Do all instructions in a folder that is made for them; each is yielded before it is done.

    Raises:
        FileExistsError: the folder is there.
    """
    machine.root.mkdir(parents=True, mode=0o755)
    for instruction in instructions(DOCKERFILE.read_text(encoding="utf-8")):
        yield instruction
        step(machine, instruction)


def call(machine: Machine, *arguments: str) -> str:
    """What the entry point prints, called as the image calls it.

    Raises:
        CalledProcessError: it ended with another code than 0.
    """
    if machine.user.partition(":")[0] in ("root", "0"):
        raise ValueError("the image's user is root")
    entry = shutil.which(machine.entrypoint[0], path=machine.environment()["PATH"])
    done = subprocess.run(
        [str(entry), *machine.entrypoint[1:], *arguments],
        cwd=machine.place(machine.workdir),
        env=machine.environment(),
        user=NOBODY if os.geteuid() == 0 and open_to_others(Path(sys.executable).resolve()) else None,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def open_to_others(file: Path) -> bool:
    """Whether a user without rights comes to a file: Python may lie in root's own folder."""
    return all(folder.stat().st_mode & 0o001 for folder in file.parents)


def main(folder: Path) -> int:
    from pii_tracer import __version__

    machine = Machine(folder.resolve())
    for instruction in build(machine):
        print(f"{instruction.name} {instruction.value}", flush=True)
    for value in machine.not_run:
        print(f"not run here: {value}")
    version, found = call(machine, "--version"), call(machine, "doctor")
    print(version, found, sep="\n")
    if __version__ not in version:
        print(f"the image's version is not {__version__}", file=sys.stderr)
        return 1
    if "not cached" in found:
        print("the image lacks jars of Spark", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
