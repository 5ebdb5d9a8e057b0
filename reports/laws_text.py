"""A law's rules for people, each with its source."""

from __future__ import annotations

from collections.abc import Iterator

from pii_tracer.config.laws import Duty, Law, Rules, Span
from reports.escape import visible


def law_lines(law: Law, rules: Rules) -> Iterator[str]:
    """The rules that are in force, a line each, and the source of each below it."""
    yield f"{law.name}: {visible(law.title)} (rules since {rules.since}, compared with the text on {law.checked})"
    practice = "" if rules.deadline.statutory else ", by practice: the law names no number"
    yield from _line(f"deadline: {_span(rules.deadline)} from receipt{practice}", rules.deadline)
    if rules.extension:
        yield from _line(f"extension: {_span(rules.extension)}, if {rules.extension.condition}", rules.extension)
    if rules.notice:
        grounds = ", ".join(rules.notice.grounds)
        words = f"notice: {rules.notice.hours} hours before an erasure ({grounds}): {rules.notice.text}"
        yield from _line(words, rules.notice)
    if rules.keep_log:
        yield from _line(f"kept on record: {rules.keep_log.days} days at least", rules.keep_log)
    for told in rules.tell:
        yield from _line(f"inform {told.whom}: {told.what}", told)


def _line(words: str, duty: Duty) -> Iterator[str]:
    yield f"  {visible(words)}"
    yield f"      {visible(duty.article)}, {visible(duty.url)}"


def _span(span: Span) -> str:
    number, word = (span.months, "month") if span.months else (span.days, "day")
    return f"{number} {word}" + ("s" if number != 1 else "")
