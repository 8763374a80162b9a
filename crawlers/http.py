"""The polite fetcher: the only way to the network (git aside)."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fetched:
    """An answer with status 200."""

    url: str
    headers: dict[str, str]
    body: bytes
    retrieved_at: dt.datetime

    def json(self) -> Any:
        """Parse as JSON; SourceChanged if it is not."""
        raise NotImplementedError


class Fetcher:
    """Placeholder until the real one lands; see the interface in the room's notes."""
