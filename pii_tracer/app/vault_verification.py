"""The verdict on a Glacier vault: an inventory made after the run's last deletion, archive by archive.

An archive that the run read or wrote is known by its tree hash, which Glacier reckons itself: its bytes were searched
then, and to fetch them once more would take hours. Any other archive is unverified, never clean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pii_tracer.app.aws_refusals import unreadable
from pii_tracer.lake.stores.glacier.vault_discovery import ASK, VaultInventory, vault_client
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import ScanError
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.proof.evidence_leaves import Erased
from pii_tracer.scan.hits import FileScan
from pii_tracer.verify.byte_search import judge
from pii_tracer.verify.verdicts import ByteVerdict

Told = Callable[[str], Sequence[Mapping[str, Any]]]
"""Step -> the facts of its answers so far, from the run's journal."""


def in_vault(copy: Copy) -> bool:
    """Whether a copy is a Glacier vault."""
    return "vault" in copy.facts


def look(plan: ErasurePlan, copy: Copy, told: Told) -> ByteVerdict:
    """The verdict for a vault.

    Raises:
        ScanError: nothing newer than the deletions tells what is in it.
    """
    step = _awaiting(plan, copy)
    if step is None:
        raise ScanError("no step of the plan changes the vault", where=copy.location, todo="make a new plan")
    deleted = _items(told, step.parameters["deleted_by"], "deleted_archives")
    fates = _items(told, step.parameters["rewritten_by"], "rewritten_archives")
    if not (deleted or fates):
        raise ScanError(
            "a vault is judged by what its run read there, and this command does not trust the run's journal",
            where=copy.location,
            todo="see the run's own verdict, or plan again: a new plan fetches every archive",
        )
    changed = max((datetime.fromisoformat(item["at"]) for item in deleted.values()), default=None)
    found = _newest(step, copy, changed)
    if found is None:
        raise ScanError(
            "no inventory newer than the run's deletions is at hand: what is in the vault now is unknown",
            where=copy.location,
            todo=_ask(step) + ", and verify again when it has ended (some hours), within a day",
        )
    known = {item["tree_hash"]: item["sha256"] for item in fates.values()}
    others = set(step.parameters["others"])
    files = []
    for archive in found.archives:
        if archive.id in others:
            continue
        scan = FileScan(path=archive.id, size=archive.size, sha256="", decoded_as="")
        if archive.id in deleted:
            scan = scan.model_copy(update={"unread": ("deleted, and the inventory still lists it",)})
        elif archive.tree_hash in known:
            scan = scan.model_copy(
                update={"sha256": known[archive.tree_hash], "decoded_as": "known by its SHA-256 tree hash"}
            )
        else:
            scan = scan.model_copy(update={"unread": ("it was not there at planning, so it was not searched",)})
        files.append(scan)
    return judge(copy, copy.location, tuple(files), frozenset(copy.other_keys))


def changed(plan: ErasurePlan, copy: Copy, verdict: ByteVerdict) -> bool:
    """Whether the newest inventory at hand lists other archives than the verdict is about; without one nothing new is
    known.
    """
    step = _awaiting(plan, copy)
    found = _newest(step, copy, None) if step else None
    if step is None or found is None:
        return False
    return {a.id for a in found.archives} - set(step.parameters["others"]) != {file.path for file in verdict.files}


def archives_gone(step: Step, told: Told) -> Iterator[Erased]:
    """The archives that a step deleted, with the hashes of their bytes where the run read them."""
    if step.action is not Action.VAULT_DELETE:
        return
    fates = _items(told, step.parameters["rewritten_by"], "rewritten_archives")
    for archive in _items(told, step.id, "deleted_archives"):
        uri = f"glacier://{step.parameters['region']}/{step.parameters['vault']}/{archive}"
        sha256 = fates[archive]["sha256_before"] if archive in fates else None
        yield Erased(copy_id=step.copy_ or "", uri=uri, sha256=sha256)


def _awaiting(plan: ErasurePlan, copy: Copy) -> Step | None:
    steps = (s for s in plan.steps if s.copy_ == copy.id and s.action is Action.VAULT_AWAIT_INVENTORY)
    return next(steps, None)


def _items(told: Told, step: str | None, name: str) -> dict[str, Mapping[str, Any]]:
    """Archive id -> what a step said of it."""
    if step is None:
        return {}
    return {item["archive"]: item for facts in told(step) for item in facts.get(name, ())}


def _newest(step: Step, copy: Copy, after: datetime | None) -> VaultInventory | None:
    own = step.parameters
    with unreadable("the vault's jobs cannot be read", copy.location, "make the vault reachable, then verify again"):
        client = vault_client(own["vault"], own["account_id"], own["region"], own["endpoint_url"])
        return max(client.inventories(after), key=lambda i: i.taken, default=None)


def _ask(step: Step) -> str:
    own = step.parameters
    return ASK.format(account=own["account_id"], region=own["region"], vault=own["vault"])
