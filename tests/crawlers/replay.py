"""A recording of `tidemark record`, served on loopback in place of the sites."""

import base64
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crawlers.recording import INDEX_FILE
from simulator.server import Request, Response, Site, serve_sites


class RecordedSite(Site):
    """The responses of one origin; one URL's responses come in order, the last one again."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys, self.quirks = keys, {}
        self.origins: dict[str, str] = {}  # where the recorded origins are served
        self._responses: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def add(self, entry: dict[str, Any]) -> None:
        parts = urlsplit(entry["url"])
        self._responses[f"{parts.path or '/'}?{parts.query}"].append(entry)

    @property
    def robots(self) -> str | None:  # type: ignore[override] # the server only reads it
        response = self._next("/robots.txt?")
        return response.body.decode() if response.status == 200 else None

    def respond(self, request: Request) -> Response:
        return self._next(f"{request.path}?{request.raw_query}")

    def _next(self, target: str) -> Response:
        entries = self._responses.get(target)
        if not entries:
            return Response(404, body=f"not recorded: {target}".encode())
        entry = entries.pop(0) if len(entries) > 1 else entries[0]
        headers = dict(entry["headers"])
        for origin, served in self.origins.items():
            if (place := headers.get("location", "")).startswith(f"{origin}/"):
                headers["location"] = served + place.removeprefix(origin)
        body = entry["body"] or ""
        packed = base64.b64decode(body) if entry["body_as"] == "base64" else body.encode()
        return Response(entry["status"], headers, packed)


@contextmanager
def replay(folder: Path) -> Iterator[dict[str, str]]:
    """Serve a recording within a ``with`` block; yield its base URLs for the ``sites`` setting.

    Hosts that only redirects lead to are served with the first site.
    """
    index = json.loads((folder / INDEX_FILE).read_text("utf-8"))
    keys: dict[str, list[str]] = defaultdict(list)
    for key, url in index["sites"].items():
        keys[_origin(url)].append(key)
    sites = {origin: RecordedSite(tuple(each)) for origin, each in keys.items()}
    first = next(iter(sites.values()))
    entries = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("[0-9]*.json"))]
    for entry in entries:
        sites.get(_origin(entry["url"]), first).add(entry)
    with serve_sites(sites.values()) as web:
        for entry in entries:
            origin = _origin(entry["url"])
            served = web.urls[sites.get(origin, first).keys[0]]
            for site in sites.values():
                site.origins[origin] = served
        yield {key: web.urls[key] + urlsplit(url).path for key, url in index["sites"].items()}


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
