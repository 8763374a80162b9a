from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import cast

from simulator.server import Request, Response, Site, serve_sites


@contextmanager
def serving(respond: Callable[[Request], Response]) -> Iterator[str]:
    site = SimpleNamespace(keys=("site",), robots=None, quirks={}, respond=respond)
    with serve_sites([cast(Site, site)]) as web:
        yield web.urls["site"]
