"""The interface runs on both databases."""

from tests.intake.conftest import database

__all__ = ["database"]
