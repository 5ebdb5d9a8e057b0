"""What a change of SQL models does to erasability, as pure data: `planners` finds it, `reports` shows it."""

from __future__ import annotations

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import ExitCode


class FindingKind(StrEnum):
    """What is wrong (a stable interface: waivers name it)."""

    COPY_WITHOUT_KEY = "copy-without-key"
    MASK_NOT_RECOMPUTABLE = "mask-not-recomputable"
    RETENTION_CLASS = "retention-class"
    LINEAGE_LOST = "lineage-lost"
    KEY_DROPPED = "key-dropped"
    IDENTIFIER_ADDED = "identifier-added"
    IDENTIFIERS_IN_AGGREGATE = "identifiers-in-aggregate"
    PERSONAL_SEED = "personal-seed"
    MODEL_REMOVED = "model-removed"
    UNREADABLE = "unreadable"
    NO_SUBJECT = "no-subject"
    WAIVER = "waiver"


SUMMARIES = {
    FindingKind.COPY_WITHOUT_KEY: "A table gets identifiers of persons, and no key finds their rows.",
    FindingKind.MASK_NOT_RECOMPUTABLE: "A mask or hash cannot be computed again, and no key is beside it.",
    FindingKind.RETENTION_CLASS: "A new table with personal data has no retention class that fits it.",
    FindingKind.LINEAGE_LOST: "A changed statement cannot be followed, so it is unknown where persons' data goes.",
    FindingKind.KEY_DROPPED: "A table loses the key by which persons were found in it.",
    FindingKind.IDENTIFIER_ADDED: "A table gets a further column with an identifier of persons.",
    FindingKind.IDENTIFIERS_IN_AGGREGATE: "An aggregate keeps identifiers of persons, without their key.",
    FindingKind.PERSONAL_SEED: "A CSV file in the repository has columns of persons.",
    FindingKind.MODEL_REMOVED: "A model of a table with persons is gone, and its table stays.",
    FindingKind.UNREADABLE: "A changed file cannot be read.",
    FindingKind.NO_SUBJECT: "No table with persons is known, so nothing can be followed.",
    FindingKind.WAIVER: "A waiver comment names nothing that it could accept.",
}
"""One sentence each, for reports that list rules."""


class Severity(StrEnum):
    """ERROR denies. WARNING is shown and does not."""

    ERROR = "error"
    WARNING = "warning"


class ReviewFinding(Frozen):
    """One finding. file: from the repository's root; line: from 1, of the new side (of the old one for what is gone).

    path: tables from the source to this one. waived: the reason that a comment in the file gives; such a finding is
    shown and does not deny. because: changed files further up that cause it.
    """

    kind: FindingKind
    severity: Severity
    file: str
    line: int
    table: str
    message: str
    todo: str
    columns: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    waived: str | None = None

    @property
    def denies(self) -> bool:
        return self.severity is Severity.ERROR and self.waived is None


class ReviewedSubject(Frozen):
    """A kind of person that was followed. guessed: by names of columns, where no estate file says it."""

    name: str
    source: str
    key: str
    guessed: bool


class ModelReview(Frozen):
    """The whole review. base, head: commits, or `working tree`. changed: parts whose text, macros or settings changed;
    compared: all that were. views: files of the changed that write views alone, which hold no rows."""

    base: str
    head: str
    subjects: tuple[ReviewedSubject, ...]
    compared: int
    changed: tuple[str, ...]
    views: tuple[str, ...] = ()
    findings: tuple[ReviewFinding, ...]

    @property
    def denied(self) -> bool:
        return any(finding.denies for finding in self.findings)

    @property
    def exit_code(self) -> ExitCode:
        """4 where a finding denies, 0 otherwise; warnings and waived findings do not fail."""
        return ExitCode.POLICY_DENIED if self.denied else ExitCode.DONE
