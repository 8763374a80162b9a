"""What a listing says of a file."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stamp:
    """What a listing says of a file; it changes with the content.

    Attributes:
        modified_at: seconds since 1970; 0 where the store does not say.
        num_bytes: its size.
        tag: what an object store calls the content; empty on a disk.
    """

    modified_at: float
    num_bytes: int
    tag: str

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Stamp:
        """Read it from an entry of fsspec, whose stores do not agree on names."""
        moment = info.get("mtime", info.get("LastModified", 0.0))
        seconds = moment.timestamp() if isinstance(moment, dt.datetime) else float(moment)
        return cls(seconds, int(info.get("size") or 0), str(info.get("ETag", "")))
