"""What an answer means: by HTTP, and where the API of a site means more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from core.errors import ItemFailed, ItemUnavailable, SourceChanged, TokenRefused
from crawlers.raw_cache import Fetched

_DROP_REASONS = {403: "http_403", 404: "http_404", 410: "http_410", 451: "permission"}


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


def require_ok(status: int, url: str, rules: ApiRules | None = None) -> None:
    """Raise what an answer other than 200 means.

    Raises:
        ItemUnavailable: the address cannot be had, and never will.
        ItemFailed: the site failed.
        TokenRefused: it wants a token, or another one.
        SourceChanged: it answers what neither HTTP nor our request explains.
    """
    if status == 200:
        return
    if reason := {**_DROP_REASONS, **(rules.drops if rules else {})}.get(status):
        raise ItemUnavailable(reason, f"{url} answered {status}")
    if status == 401:
        raise TokenRefused(
            f"{url} answered 401: it wants a token, or does not accept the one sent; "
            "see TIDEMARK_TOKENS in docs/settings.md"
        )
    if status >= 500:
        message = f"{url} answered {status}; run the same command again later"
        raise ItemFailed("http_5xx", message)
    raise SourceChanged(f"{url} answered {status}, which this source never did; expected 200")
