"""Why a Parquet file has to be written again as a whole: what surgery is refused for, in one place."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """Why every row group is written again; the text stands in the facts of a step."""

    NO_FOOTER = "its footer cannot be read field by field"
    NOT_CANONICAL = "a Thrift writer would encode numbers or fields of its footer differently"
    ENCRYPTED = "parts of it are encrypted"
    VERSION = "its format version is not known"
    UNKNOWN_FIELD = "its footer has an unknown field that may be an offset"
    OTHER_FILES = "some of its column chunks are in other files"
    CHUNK_TEXTS = "a column chunk has its own key-value metadata"
    NAMED = "the name of its writer contains the person"
    OUTSIDE = "an offset in its footer lies outside of the file"
    OVERLAP = "two of its parts share bytes"
    ORDER = "its row groups or indexes are not in the order of the file"
    PAGES = "its pages do not fill their column chunks"
    INDEX = "one of its offset indexes does not point to pages"
    BLOOM = "one of its bloom filters has no known size"
    EVERY_GROUP = "every row group changes"
    SCHEMA = "its schema cannot be written back exactly"
    COLUMN_ORDERS = "its bounds are sorted in another order than the writer's"


class Unsuited(ValueError):
    """A file that has to be written again as a whole."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason
