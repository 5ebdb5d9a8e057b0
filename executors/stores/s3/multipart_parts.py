"""Parts of a multipart upload that makes an object out of its old self and of new bytes.

S3 takes no part below 5 MiB but the last (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html). So short
pieces that stay are sent together with their new neighbours. There are never more parts than two for each 5 MiB of an
object, and a rewrite takes none above 2 GiB: far below the 10,000 that an upload may have. A long piece is copied in
several parts, side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from executors.formats.plain_files.parquet_surgery.recipe import File, Recipe, Span

LEAST = 5 * 1024**2
"""Bytes of a part that is not the last."""
MOST = 64 * 1024**2
"""Bytes of a part that is copied."""


@dataclass(frozen=True)
class UploadPart:
    """One part. new: its bytes in the new object; old: the same bytes in the old one, None where they are sent."""

    new: range
    old: range | None


def upload_parts(recipe: Recipe) -> tuple[UploadPart, ...]:
    """The parts in their order; where none of them can be copied, there are none."""
    parts: list[UploadPart] = []
    sent = at = 0  # what is not in a part yet begins at `sent`
    for piece in recipe.pieces:
        end = at + len(piece)
        if isinstance(piece, Span) and piece.file is File.SOURCE:
            # the bytes in front are a part of their own only where they are enough
            begin = max(at, sent + LEAST) if at > sent else at
            if end - begin >= LEAST:
                if begin > sent:
                    parts.append(UploadPart(range(sent, begin), None))
                parts += _copied(range(begin, end), piece.extent.start - at)
                sent = end
        at = end
    if not parts:
        return ()
    return (*parts, UploadPart(range(sent, at), None)) if at > sent else tuple(parts)


def _copied(new: range, shift: int) -> Iterator[UploadPart]:
    """Parts of about the same size that are copied. shift: from a place in the new object to that in the old one."""
    count = -(-len(new) // MOST)
    edges = [new.start + len(new) * n // count for n in range(count + 1)]
    return (UploadPart(range(a, b), range(a + shift, b + shift)) for a, b in pairwise(edges))
