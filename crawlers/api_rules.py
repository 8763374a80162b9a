"""What the API of a site means by its answers, where that is more than HTTP says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from crawlers.raw_cache import Fetched


@dataclass(frozen=True)
class ApiRules:
    """Rules for one site; see ``Fetcher.heed``.

    Attributes:
        pause_s: status and answer -> for how many seconds the host is to be left alone, or None.
            After an answer 200 it keeps us from overstepping a limit that is used up; a 403 of
            which it says a time is tried again after it, like a 429. An error (400 and above) comes
            with its body; where that explains a refusal, it may raise a SourceError of its own.
        drops: drop reason by status, where an item is not there for a reason of the API's own.
    """

    pause_s: Callable[[int, Fetched], float | None]
    drops: Mapping[int, str] = field(default_factory=dict)
