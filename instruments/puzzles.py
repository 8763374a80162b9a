"""The third instrument (measurement): answers of models to puzzles, by the extra ``scylla``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.errors import OrchestrationError
from core.plugins import import_parts
from core.settings import Settings
from instruments.driver import WorkRequest


def solve_request(
    models: Sequence[str], puzzles: Sequence[str] | None, settings: Settings, **choices: Any
) -> WorkRequest:
    """Return the request to solve puzzles (None: all); ``choices`` are its further fields.

    Raises:
        OrchestrationError: the extra is missing.
    """
    for part in import_parts("solving"):
        request: WorkRequest = part.puzzle_request(models, puzzles, settings, **choices)
        return request
    raise OrchestrationError(
        "puzzles cannot be solved here, because the folder extras/scylla is missing: install "
        "tidemark with it, or give this work to a machine that has it"
    )
