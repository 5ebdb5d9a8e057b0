"""Git repositories in temporary folders, and reviews of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pii_tracer.app.model_review.changed_models import ReviewInputs, review_models
from pii_tracer.model.model_review import ModelReview


class Repo:
    """A repository whose branch `main` is the base."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=Asha", "-c", "user.email=asha@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *identity, *arguments], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def put(self, files: dict[str, str | bytes]) -> Repo:
        for path, content in files.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        return self

    def commit(self) -> Repo:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "state")
        return self

    def clean(self) -> None:
        self.git("reset", "-q", "--hard")
        self.git("clean", "-qfd")

    def review(self, base: str = "main", head: str | None = None, **inputs: object) -> ModelReview:
        return review_models(self.root, base, head=head, inputs=ReviewInputs(**inputs))  # type: ignore[arg-type]


def brief(found: ModelReview) -> list[tuple[str, str, str, int]]:
    """Severity (or `accepted`), kind, file and line of each finding."""
    return [
        ("accepted" if f.waived is not None else f.severity.value, f.kind.value, f.file, f.line) for f in found.findings
    ]
