"""New data for a fitted model: rows appended, cells edited, rows removed, without a restart."""

from __future__ import annotations

from glfm.changes.verbs import Changes

__all__ = ["Changes"]
