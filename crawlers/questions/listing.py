"""The lists that a walk cannot do without."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from core.errors import AccessRefused, ItemUnavailable, SourceChanged
from crawlers.http import Fetched, Fetcher


@dataclass(frozen=True)
class Listing:
    """A site's list of questions, a page at a time.

    Attributes:
        fetcher: asks for it.
        key: of the site.
        not_before: no page from before is believed (``know_all_from``).
        headers: sent with each request, such as a token.
    """

    fetcher: Fetcher
    key: str
    not_before: dt.datetime
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def page(
        self,
        path: str,
        params: Mapping[str, str | int],
        is_busy: Callable[[Fetched], bool],
    ) -> Fetched:
        """Fetch a page.

        Args:
            path: may hold a query.
            params: more of the query.
            is_busy: whether an answer 200 is no page to be believed, and to be asked for again.

        Raises:
            AccessRefused: robots.txt, or the site, forbids the list.
            SourceChanged: there is no such list.
            ItemFailed: it cannot be had now.
        """
        try:
            return self.fetcher.get(
                self.key,
                path,
                params,
                headers=self.headers,
                is_busy=is_busy,
                not_before=self.not_before,
            )
        except ItemUnavailable as error:
            if error.reason in {"robots", "http_403", "permission"}:
                raise AccessRefused(f"the list of questions is closed to us: {error}") from error
            raise SourceChanged(f"the list of questions cannot be had: {error}") from error
