"""Why a Parquet file has to be written again as a whole: what surgery is refused for, in one place."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """Why every row group is written again; the text stands in the facts of a step."""

    NO_FOOTER = "its footer cannot be read field by field"
    NOT_CANONICAL = "its footer has numbers or fields that a Thrift writer would encode in another way"
    ENCRYPTED = "parts of it are encrypted"
    VERSION = "its format version is not known"
    UNKNOWN_FIELD = "its footer has an unknown field that may be an offset"
    OTHER_FILES = "some of its column chunks lie in other files"
    CHUNK_TEXTS = "a column chunk has key-value metadata of its own"
    NAMED = "the name of its writer holds the person"
    OUTSIDE = "an offset in its footer lies outside of the file"
    OVERLAP = "two of its parts share bytes"
    ORDER = "its row groups or indexes are not in the order of the file"
    PAGES = "its pages do not make up their column chunks"
    INDEX = "an offset index of it does not point to pages"
    BLOOM = "a bloom filter of it has no known size"
    EVERY_GROUP = "every row group changes"
    SCHEMA = "its schema cannot be written back exactly"
    COLUMN_ORDERS = "its bounds are sorted in another order than the writer's"


class Unsuited(ValueError):
    """A file that has to be written again as a whole."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason
