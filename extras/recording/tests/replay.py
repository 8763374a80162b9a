"""A recording of `tidemark sources record`, served on loopback in place of the sites."""

import dataclasses
import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from crawlers.web.fetcher import Fetched
from extras.recording.recording import REPOSITORIES, ROBOTS, read_recording
from simulator.server import Request, Response, Site, serve_sites
from simulator.sites.github import run_backend


class RecordedSite(Site):
    """The responses of one origin; one URL's responses come in order, the last one again."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self.quirks = {}
        self.origins: dict[str, str] = {}  # where the recorded origins are served
        self._responses: dict[str, list[tuple[int, Fetched]]] = defaultdict(list)
        self.repositories: Path | None = None  # folder of bare repositories: owner/name

    def add(self, status: int, answer: Fetched) -> None:
        parts = urlsplit(answer.url)
        self._responses[f"{parts.path or '/'}?{parts.query}"].append((status, answer))

    @property
    def robots(self) -> str | None:  # type: ignore[override] # the server only reads it
        response = self._next(f"{ROBOTS}?")
        return response.body.decode() if response.status == 200 else None

    def respond(self, request: Request) -> Response:
        if self.repositories and request.path.endswith(("/info/refs", "/git-upload-pack")):
            path = request.path.replace(".git/", "/")
            return run_backend(self.repositories, dataclasses.replace(request, path=path))
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
    with TemporaryDirectory(prefix="tidemark-replay-") as root, serve_sites(sites.values()) as web:
        for pack in sorted((folder / REPOSITORIES).glob("*.pack")):
            _restore(pack, Path(root))
            first.repositories = Path(root)
        for origin in {_origin(answer.url) for _, answer in answers}:
            served = web.urls[sites.get(origin, first).keys[0]]
            for site in sites.values():
                site.origins[origin] = served
        yield {key: web.urls[key] + urlsplit(url).path for key, url in index.sites.items()}


def _restore(pack: Path, root: Path) -> None:
    """Make a bare repository of a recorded pack, from which it can be cloned as it was."""
    facts = json.loads(pack.with_suffix(".json").read_text("utf-8"))
    target = root / facts["repository"]
    subprocess.run(["git", "init", "--quiet", "--bare", "--template=", str(target)], check=True)
    copy = target / "objects" / "pack" / "pack-1.pack"
    shutil.copyfile(pack, copy)
    copy.with_suffix(".promisor").touch()  # contents of files may be missing
    config = {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": "http://127.0.0.1:9/",
        "uploadpack.allowFilter": "true",
        "uploadpack.allowAnySHA1InWant": "true",
    }
    commands = [
        *(["config", key, value] for key, value in config.items()),
        ["index-pack", str(copy)],
        ["update-ref", facts["branch"], facts["commit"]],
        ["symbolic-ref", "HEAD", facts["branch"]],
    ]
    for command in commands:
        subprocess.run(["git", f"--git-dir={target}", *command], check=True, capture_output=True)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
