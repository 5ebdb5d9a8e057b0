"""Many texts as two arrays: where each starts, and their bytes. Nothing is decoded before it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Pool:
    """Texts by number. starts: n+1 places in `data`, the last one is its end. data: UTF-8."""

    starts: U64
    data: U8

    @staticmethod
    def of(texts: Iterable[str]) -> Pool:
        """A pool of these texts, in this order."""
        encoded = [text.encode() for text in texts]
        starts = np.zeros(len(encoded) + 1, np.uint64)
        np.cumsum(np.fromiter(map(len, encoded), np.uint64, len(encoded)), out=starts[1:])
        return Pool(starts, np.frombuffer(b"".join(encoded), np.uint8))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> str:
        first, last = int(self.starts[number]), int(self.starts[number + 1])
        return self.data[first:last].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        places = self.starts.tolist()
        for first, last in pairwise(places):
            yield self.data[first:last].tobytes().decode()

    def fault(self) -> str | None:
        """Why this is no pool of texts, or None: places must follow each other, and cut no character."""
        if not len(self.starts) or self.starts[0] != 0 or self.starts[-1] != len(self.data):
            return "texts do not fill their place"
        if (self.starts[1:] < self.starts[:-1]).any():
            return "texts overlap"
        try:
            str(self.data.data, "utf-8")
        except UnicodeDecodeError:
            return "texts are not UTF-8"
        inside = self.starts[self.starts < len(self.data)].astype(np.int64)
        # a byte 10xxxxxx goes on with a character (RFC 3629, section 3)
        return "texts cut a character" if ((self.data[inside] & 0xC0) == 0x80).any() else None
