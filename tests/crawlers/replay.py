"""A recording of `tidemark sources record`, served on loopback in place of the sites."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from crawlers.crawling.recording import ROBOTS, read_recording
from crawlers.web.fetcher import Fetched
from simulator.server import Request, Response, Site, serve_sites


class RecordedSite(Site):
    """The responses of one origin; one URL's responses come in order, the last one again."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys, self.quirks = keys, {}
        self.origins: dict[str, str] = {}  # where the recorded origins are served
        self._responses: dict[str, list[tuple[int, Fetched]]] = defaultdict(list)

    def add(self, status: int, answer: Fetched) -> None:
        parts = urlsplit(answer.url)
        self._responses[f"{parts.path or '/'}?{parts.query}"].append((status, answer))

    @property
    def robots(self) -> str | None:  # type: ignore[override] # the server only reads it
        response = self._next(f"{ROBOTS}?")
        return response.body.decode() if response.status == 200 else None

    def respond(self, request: Request) -> Response:
        return self._next(f"{request.path}?{request.raw_query}")

    def _next(self, target: str) -> Response:
        answers = self._responses.get(target)
        if not answers:
            return Response(404, body=f"not recorded: {target}".encode())
        status, answer = answers.pop(0) if len(answers) > 1 else answers[0]
        headers = dict(answer.headers)
        for origin, served in self.origins.items():
            if (place := headers.get("location", "")).startswith(f"{origin}/"):
                headers["location"] = served + place.removeprefix(origin)
        if status == 200 and "content-range" in headers:
            status = 206  # a part of a file counts as an answer 200
        return Response(status, headers, answer.body)


@contextmanager
def replay(folder: Path) -> Iterator[dict[str, str]]:
    """Serve a recording within a ``with`` block; yield its base URLs for the ``sites`` setting.

    Hosts that only redirects lead to are served with the first site.
    """
    index, answers = read_recording(folder)
    keys: dict[str, list[str]] = defaultdict(list)
    for key, url in index.sites.items():
        keys[_origin(url)].append(key)
    sites = {origin: RecordedSite(tuple(each)) for origin, each in keys.items()}
    first = next(iter(sites.values()))
    for status, answer in answers:
        sites.get(_origin(answer.url), first).add(status, answer)
    with serve_sites(sites.values()) as web:
        for origin in {_origin(answer.url) for _, answer in answers}:
            served = web.urls[sites.get(origin, first).keys[0]]
            for site in sites.values():
                site.origins[origin] = served
        yield {key: web.urls[key] + urlsplit(url).path for key, url in index.sites.items()}


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
