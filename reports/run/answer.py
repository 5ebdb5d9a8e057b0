"""The answer to one request for its person: one printable page, and lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pii_tracer.common.plurals import counted
from pii_tracer.proof.request_answers.answer import AnswerItem, Outcome, RequestAnswer, Standing, ToldRecipient
from reports.escape import visible
from reports.html_templates import render_html

_TITLES = {
    Outcome.ERASED: "Your data was erased",
    Outcome.ERASED_IN_PART: "Your data was erased in part",
    Outcome.NOT_ERASED: "Your data is not confirmed as erased",
}
_HEADS = {
    Standing.ERASED: "Erased, and verified",
    Standing.UNREADABLE: "Unreadable for ever",
    Standing.PARTLY: "Erased in part: the rest is kept",
    Standing.KEPT: "Not erased: kept at your own request",
    Standing.HELD: "Not erased: it must be kept",
    Standing.WAITING: "Not erased yet: it has to wait",
    Standing.NOT_ERASED: "Not erased yet",
    Standing.FOUND: "Not erased: found again after the erasure",
    Standing.UNCONFIRMED: "Not confirmed as erased",
    Standing.ANSWERED: "Not searched: a named person answers for it",
}
"""In the order of the page."""
_PASSED_ON = "Others who got your data"


@dataclass(frozen=True)
class Part:
    """Places that stand alike."""

    head: str
    items: tuple[AnswerItem, ...]


def parts_of(answer: RequestAnswer) -> tuple[Part, ...]:
    """The places by how they stand."""
    found = (Part(head, answer.of(standing)) for standing, head in _HEADS.items())
    return tuple(part for part in found if part.items)


def said_of(item: AnswerItem) -> str:
    """What is told of one place beside its name; empty where its head says all."""
    told = [item.why] if item.why else []
    if item.at:
        told.append(f"verified on {item.at:%Y-%m-%d}")
    if item.who:
        told.append(f"{item.who} answers for it")
    told.append(_until(item))
    return "; ".join(text for text in told if text)


def _until(item: AnswerItem) -> str:
    if item.until:
        words = {Standing.WAITING: "not before", Standing.ANSWERED: "valid until"}
        return f"{words.get(item.standing, 'until')} {item.until:%Y-%m-%d}"
    return "no end is known" if item.standing in (Standing.HELD, Standing.PARTLY, Standing.WAITING) else ""


_TOLD = {
    "file": "a notice was put into its folder on",
    "email": "a text was written to be sent by hand, on",
    "webhook": "it was informed on",
}


def said_of_recipient(one: ToldRecipient) -> str:
    """What is told of another who got the data."""
    if one.told_at is None:
        return one.problem or "not informed yet"
    told = f"{_TOLD.get(one.how, 'informed on')} {one.told_at:%Y-%m-%d}"
    if one.confirmed_at:
        return f"{told}; {one.confirmed_by} confirmed on {one.confirmed_at:%Y-%m-%d}: {one.said}"
    return f"{told}; not confirmed, due by {one.confirm_by:%Y-%m-%d}"


def sentence(answer: RequestAnswer) -> str:
    """The answer in one sentence."""
    gone = len(answer.of(Standing.ERASED, Standing.UNREADABLE, Standing.PARTLY))
    stays = len(answer.items) - gone - len(answer.of(Standing.ANSWERED))
    if answer.outcome is Outcome.ERASED and not answer.items:
        return f"On {answer.at:%Y-%m-%d}, nothing more of your data was found. A certificate shows it."
    if answer.outcome is Outcome.ERASED:
        return f"On {answer.at:%Y-%m-%d}, your data is erased in {counted(gone, 'place')}. A certificate shows it."
    if answer.outcome is Outcome.ERASED_IN_PART:
        rest = f"{counted(stays, 'other place is', 'other places are')} not, or not completely" if stays else ""
        rest = rest or "the search of all other places is not over"
        return f"On {answer.at:%Y-%m-%d}, your data is erased in {counted(gone, 'place')}, and {rest}."
    why = f": {answer.doubt}" if answer.doubt else ""
    return f"On {answer.at:%Y-%m-%d}, we cannot confirm that your data is erased{why}."


def answer_lines(answer: RequestAnswer) -> Iterator[str]:
    """The answer as text, harmless on a terminal."""
    return map(visible, _lines(answer))


def _lines(answer: RequestAnswer) -> Iterator[str]:
    yield f"{answer.request} (person {answer.subject}, {answer.law}): {_TITLES[answer.outcome]}"
    yield f"  {sentence(answer)}"
    for part in parts_of(answer):
        yield f"  {part.head}:"
        for item in part.items:
            said = said_of(item)
            yield f"    {item.what}" + (f": {said}" if said else "")
    if answer.recipients:
        yield f"  {_PASSED_ON}:"
    yield from (f"    {one.name}: {said_of_recipient(one)}" for one in answer.recipients)


def render_answer(answer: RequestAnswer, file: str) -> str:
    """One self-contained page for A4 (inline style, no script, no request). file: the name of the signed answer."""
    parts = [(part.head, [(item.what, said_of(item)) for item in part.items]) for part in parts_of(answer)]
    parts += [(_PASSED_ON, [(one.name, said_of_recipient(one)) for one in answer.recipients])]
    parts = [part for part in parts if part[1]]
    title, said = _TITLES[answer.outcome], sentence(answer)
    return render_html("answer.html.j2", answer=answer, title=title, said=said, parts=parts, file=file)
