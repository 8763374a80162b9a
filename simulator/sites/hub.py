"""Simulated Hugging Face hub: model repositories whose files lie in local folders.

The site implements the download requests of ``huggingface_hub``: a model's metadata
(``/api/models/<id>``), list of files, and files (``/<id>/resolve/<revision>/<file>``). Requests for
large files are redirected to a store that supports range requests. As on the real hub, the metadata
of a gated model is public, but its files need a token. Without a token, private models look like
missing models.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from simulator.server import QuirkName, Request, Response, as_json, ranged
from simulator.world import World

TOKEN = "hf_simulated"  # noqa: S105 - simulated; has access to every gated model
_LARGE_FILES = (".safetensors", ".bin", ".model")  # the store serves these files, by SHA-256
_API = re.compile(
    r"/api/models/(?P<name>[^/]+(?:/[^/]+)?)(?:/(?P<kind>revision|tree)/(?P<at>[^/]+))?"
)
_FILE = re.compile(r"/(?P<name>[^/]+(?:/[^/]+)?)/resolve/(?P<at>[^/]+)/(?P<path>.+)")
_STORED = re.compile(r"/store/(?P<sha256>[0-9a-f]{64})")


@dataclass(frozen=True)
class _File:
    where: Path
    size: int
    sha256: str
    blob_id: str  # git object id of the file

    @property
    def is_large(self) -> bool:
        return self.where.suffix in _LARGE_FILES

    @property
    def etag(self) -> str:
        return self.sha256 if self.is_large else self.blob_id


@dataclass
class _Repository:
    is_gated: bool = False
    commits: dict[str, dict[str, _File]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)

    def find(self, revision: str) -> str | None:
        commit = self.refs.get(revision, revision)
        return commit if commit in self.commits else None


class Site:
    """A hub, initially without models; ``add`` adds a model."""

    keys = ("hub",)
    robots = None

    def __init__(self, world: World | None = None) -> None:
        self._repositories: dict[str, _Repository] = {}
        self.quirks: dict[QuirkName, int] = {}
        # Sizes in bytes at which the store truncates its next GET responses.
        self.cuts: list[int] = []

    def state(self, name: str, **facts: object) -> None:
        """State facts of a model in its record, such as ``createdAt``; ``add`` it first."""
        self._repositories[name].facts |= facts

    def add(self, name: str, folder: Path, revision: str = "main", gated: bool = False) -> str:
        """Commit a folder to the model ``name``, such as ``someone/tiny``; return the commit id.

        Files are read at each request, so tests can change them. Gated files need ``TOKEN``.
        """
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        files = {path.relative_to(folder).as_posix(): _describe(path) for path in paths}
        tree = "".join(f"{path} {file.sha256}\n" for path, file in files.items())
        commit = hashlib.sha1(tree.encode(), usedforsecurity=False).hexdigest()
        repository = self._repositories.setdefault(name, _Repository())
        repository.is_gated = gated
        repository.commits[commit] = files
        repository.refs[revision] = commit
        return commit

    def respond(self, request: Request) -> Response:
        """Respond with a model's metadata, its list of files, or one file."""
        path = unquote(request.path)
        asked = _STORED.fullmatch(path)
        if asked:
            return self._stored(asked["sha256"], request)
        asked = _API.fullmatch(path)
        if asked:
            return self._record(asked["name"], asked["kind"], asked["at"] or "main", request)
        asked = _FILE.fullmatch(path)
        if asked:
            return self._file(asked["name"], asked["at"], asked["path"], request)
        return Response(404)

    def _record(self, name: str, kind: str | None, revision: str, request: Request) -> Response:
        """Answer the record of a repository, or the list of its files."""
        repository = self._repositories.get(name)
        if repository is None:
            return _absent(request)
        commit = repository.find(revision)
        if commit is None:
            return _error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        files = repository.commits[commit]
        if kind == "tree":
            return as_json([_tree_row(path, file) for path, file in files.items()])
        has_sizes = request.arg("blobs").lower() in {"true", "1"}
        return as_json({
            "id": name, "modelId": name, "sha": commit, "private": False, "disabled": False,
            "gated": "manual" if repository.is_gated else False,
            "siblings": [_sibling(path, file, has_sizes) for path, file in files.items()],
            **repository.facts,
        })  # fmt: skip

    def _file(self, name: str, revision: str, path: str, request: Request) -> Response:
        """Answer a file; a large one is a redirect to the store."""
        repository = self._repositories.get(name)
        if repository is None:
            return _absent(request)
        if repository.is_gated and _token(request) != TOKEN:
            status = 403 if _token(request) else 401
            return _error(status, "GatedRepo", f"Access to model {name} is restricted.")
        commit = repository.find(revision)
        if commit is None:
            return _error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        file = repository.commits[commit].get(path)
        if file is None:
            return _error(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
        headers = {"X-Repo-Commit": commit, "ETag": f'"{file.etag}"'}
        if not file.is_large:
            return ranged(file.where.read_bytes(), headers, request)
        headers |= {"X-Linked-Etag": f'"{file.sha256}"', "X-Linked-Size": str(file.size)}
        headers["Location"] = f"http://{request.headers['host']}/store/{file.sha256}?of={commit}"
        return Response(302, headers)

    def _stored(self, sha256: str, request: Request) -> Response:
        """Answer a large file by its hash."""
        commits = (files for each in self._repositories.values() for files in each.commits.values())
        for file in (file for files in commits for file in files.values()):
            if file.sha256 == sha256:
                headers = {"ETag": f'"{sha256}"', "X-Repo-Commit": request.arg("of")}
                whole = ranged(file.where.read_bytes(), headers, request)
                return self._cut(whole, request.method)
        return Response(404)

    def _cut(self, whole: Response, method: str) -> Response:
        if not self.cuts or method == "HEAD":
            return whole
        headers = {"Content-Length": str(len(whole.body)), "Connection": "close", **whole.headers}
        return Response(whole.status, headers, whole.body[: self.cuts.pop(0)])


def _describe(path: Path) -> _File:
    """Return a file's size and hashes, as git and the Hub compute them."""
    content = path.read_bytes()
    blob = b"blob %d\0" % len(content) + content
    return _File(
        where=path,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        blob_id=hashlib.sha1(blob, usedforsecurity=False).hexdigest(),
    )


def _tree_row(path: str, file: _File) -> dict[str, object]:
    row: dict[str, object] = {"type": "file", "path": path, "size": file.size, "oid": file.blob_id}
    if file.is_large:
        row["lfs"] = {"oid": file.sha256, "size": file.size, "pointerSize": 130}
    return row


def _sibling(path: str, file: _File, has_sizes: bool) -> dict[str, object]:
    row: dict[str, object] = {"rfilename": path}
    if has_sizes:
        row |= {"size": file.size, "blobId": file.blob_id}
    if has_sizes and file.is_large:
        row["lfs"] = {"sha256": file.sha256, "size": file.size, "pointerSize": 130}
    return row


def _token(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def _absent(request: Request) -> Response:
    if not _token(request):
        return _error(401, "RepoNotFound", "Invalid username or password.")
    return _error(404, "RepoNotFound", "Repository not found")


def _error(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    named = {"X-Error-Code": code, "X-Error-Message": message, **(headers or {})}
    return as_json({"error": message}, status, named)
