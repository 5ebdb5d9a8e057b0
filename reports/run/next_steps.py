"""What to do after a run, in commands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from pii_tracer.common.plurals import counted


def next_steps(result: Mapping[str, Any], state: str | None = None) -> tuple[str, ...]:
    """What a person does next about the final object of a run, one sentence or two each.

    What single steps need stands with them (`failed`). state: the state folder, where commands have to name it.
    """
    run = str(result["plan_id"])

    def command(*words: str) -> str:
        return f"`{shlex.join(['pii-tracer', *words, run, *(['--state', state] if state else [])])}`"

    resume = command("resume")
    told = []
    lost = result.get("bystander_rows_lost")
    if lost:
        told.append(
            f"{counted(lost, 'row')} of other people lost or changed: compare the tables in the report with a backup, "
            f"restore the rows of other people, then {resume}, which verifies again"
        )
    foreseen = [item for item in result["residue"] if item.get("foreseen")]
    if foreseen:
        gaps = ", ".join(sorted({gap for item in foreseen for gap in item["foreseen"]}))
        told.append(
            f"a waiver ({gaps}) expected remaining data in {counted(len(foreseen), 'place')} of the residue: ask the "
            f"person who waived the gap to do the task in the waiver, then {resume}, which verifies again"
        )
    rest = len(result["residue"]) - len(foreseen)
    still = result.get("open_requests") or ()
    if still:
        told.append(
            f"data is left of only {counted(len(still), 'person', 'persons')}: stop jobs that write there, then plan "
            "for these persons again (`pii-tracer plan --carried-over`, with `--source-erased` if the source is "
            "erased)"
        )
        told.append(f"answer each of the others with {command('attest', 'certificate', '--request', 'REQUEST')}")
    elif rest:
        told.append(
            f"no waiver expected data in {counted(rest, 'place')} of the residue: stop jobs that write there, then "
            f"{resume}, which verifies again. Data that then remains needs a new plan (`pii-tracer plan … "
            "--source-erased`)"
        )
    if result["unverified"]:
        told.append(
            f"{counted(len(result['unverified']), 'place')} could not be read: make them readable, then {resume}"
        )
    if result["drift"]:
        told.append("the estate differs from the plan: check the changes, then plan again")
    if result["waiting_until"]:
        told.append(f"{resume}, from {result['waiting_until']} on, or when the person who was asked has answered")
    if result["failed"] and not told:
        told.append(f"fix the errors in the report, then {resume}")
    if result["attestation"] and not told:
        answer, close = command("attest", "certificate"), command("close")
        told.append(f"answer the person with {answer}, then destroy the sealed values with {close}")
    return tuple(told)
