"""The Hugging Face hub: queries for a model's files and for access to them.

``cache.py`` downloads the files. The access token is HF_TOKEN, or the token of ``hf auth login``.
The address of the hub is the library's default, unless the setting ``sites`` has a key ``hub``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2
from huggingface_hub import (
    HfApi,
    constants,
    get_cached_repo_tree,
    get_hf_file_metadata,
    get_token,
    hf_hub_download,
    hf_hub_url,
)
from huggingface_hub.errors import (
    CachedRepoTreeNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from core.errors import ModelLoadError
from core.settings import Settings
from core.within import answer_within
from models.catalogue import ModelEntry
from models.weights.files import ADAPTER_CONFIG, choose_files, first_line, is_whole, read_base

TIMEOUT_S = 10.0  # timeout between two pieces of a response; a slower hub counts as unreachable
WHOLE_TIMEOUT_S = 60.0  # timeout of a query with the search for the hub's address and all retries
DEFAULT_REVISION = "main"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NUM_AT_ONCE = 8


@dataclass(frozen=True)
class HubFile:
    """A file in a commit of the hub.

    Attributes:
        sha256: digest of large files, which the hub stores outside git.
        blob_id: git's SHA-1 of small files.
    """

    name: str
    size: int | None
    sha256: str | None
    blob_id: str | None


@dataclass(frozen=True)
class Listing:
    """The needed files of a model at one commit of the hub."""

    location: str
    commit: str
    files: tuple[HubFile, ...]

    @property
    def is_adapter(self) -> bool:
        """True if the model is an adapter, which changes another model's weights."""
        return any(file.name == ADAPTER_CONFIG for file in self.files)

    @property
    def num_bytes(self) -> int:
        """Total size in bytes of all files of known size."""
        return sum(file.size or 0 for file in self.files)


def endpoint_of(settings: Settings) -> str | None:
    """Return the hub's address from the settings, or None for the hub library's default."""
    return settings.sites.get("hub", "").rstrip("/") or None


def is_hub_id(location: str) -> bool:
    """Return True if a location that is not a folder has the form of a hub id."""
    return not location.startswith(("/", ".", "~")) and location.count("/") <= 1


def is_on_hub(entry: ModelEntry) -> bool:
    """Return True if a model's files come from the hub."""
    is_folder = Path(entry.location).expanduser().is_dir()
    return entry.backend.from_hub and not is_folder and is_hub_id(entry.location)


def local_folder(entry: ModelEntry) -> Path | None:
    """Return the folder of a model's files on this machine, or None if there is none."""
    folder = Path(entry.location).expanduser()
    if folder.is_dir():
        return folder
    if not is_on_hub(entry):
        return None
    return find_cached(entry.location, entry.revision, entry.is_trusted)


def ask_hub(
    location: str, revision: str | None, settings: Settings, is_trusted: bool = False
) -> Listing:
    """Return the needed files of a model at a revision, after a check of access to them.

    Raise ModelLoadError, with advice, if model or revision is absent or gated, or the hub cannot be
    reached. A model without weights that can be loaded raises ModelLoadError, too.
    """
    with explain_failures(location, revision):
        commit, files = answer_within(
            WHOLE_TIMEOUT_S, partial(_ask_for_files, location, revision, settings)
        )
    chosen = choose_files(files, location, is_trusted)
    return Listing(location, commit, tuple(files[name] for name in chosen))


def _ask_for_files(
    location: str, revision: str | None, settings: Settings
) -> tuple[str, dict[str, HubFile]]:
    """Return a model's commit and files; raise the hub library's errors."""
    endpoint = endpoint_of(settings)
    record = HfApi(endpoint=endpoint).model_info(
        location, revision=revision or DEFAULT_REVISION, files_metadata=True, timeout=TIMEOUT_S
    )
    commit = record.sha or ""
    if not _COMMIT.fullmatch(commit):
        raise ModelLoadError(f"{location}: the hub names no commit of it, but {commit!r}")
    files = {
        file.rfilename: HubFile(
            file.rfilename, file.size, file.lfs.sha256 if file.lfs else None, file.blob_id
        )
        for file in record.siblings or []
    }
    # The record of a gated model is public; only a request for a file reveals access.
    first = next((name for name in ("config.json", ADAPTER_CONFIG) if name in files), None)
    if first is not None:
        url = hf_hub_url(location, first, revision=commit, endpoint=endpoint)
        get_hf_file_metadata(url, timeout=TIMEOUT_S, endpoint=endpoint)
    return commit, files


def check_access(entries: Iterable[ModelEntry], settings: Settings) -> dict[str, str]:
    """Return an error message for each entry whose files the hub does not provide, by name."""
    # Only models outside the cache, and adapters' base models, are queried, in parallel.
    asked = [entry for entry in entries if entry.backend.from_hub]
    with ThreadPoolExecutor(_NUM_AT_ONCE) as pool:
        problems = list(pool.map(partial(_problem, settings=settings), asked))
    return {entry.name: why for entry, why in zip(asked, problems, strict=True) if why}


def _problem(entry: ModelEntry, settings: Settings) -> str | None:
    """Return why the hub does not provide a model, or an adapter's base model; None if it does."""
    try:
        base = _require_access(entry.location, entry.revision, settings, entry.is_trusted)
        if base is not None:
            _require_access(*base, settings, entry.is_trusted)
    except ModelLoadError as error:
        return str(error)
    return None


def _require_access(
    location: str, revision: str | None, settings: Settings, is_trusted: bool
) -> tuple[str, str | None] | None:
    """Check access to a model; return location and revision of an adapter's base, else None."""
    folder: Path | None = Path(location).expanduser()
    if folder is not None and not folder.is_dir():
        if not is_hub_id(location):
            return None  # opening the model later reports the missing folder
        folder = find_cached(location, revision, is_trusted)
    if folder is None:
        listing = ask_hub(location, revision, settings, is_trusted)
        if not listing.is_adapter:
            return None
        with explain_failures(location, revision):
            endpoint = endpoint_of(settings)
            config = hf_hub_download(
                location, ADAPTER_CONFIG, revision=listing.commit, endpoint=endpoint
            )
        folder = Path(config).parent
    return read_base(folder, location) if (folder / ADAPTER_CONFIG).is_file() else None


def cache_folder(location: str) -> Path:
    """Return a model's folder in the hub library's cache."""
    return Path(constants.HF_HUB_CACHE).expanduser() / f"models--{location.replace('/', '--')}"


def find_cached(location: str, revision: str | None, is_trusted: bool) -> Path | None:
    """Return the folder of a complete cached model, or None, without a request to the hub."""
    revision = check_revision(location, revision) or DEFAULT_REVISION
    cache = cache_folder(location)
    commit = revision
    if not _COMMIT.fullmatch(revision):
        reference = cache / "refs" / revision
        if not reference.is_file():
            return None
        commit = reference.read_text().strip()
    folder = cache / "snapshots" / commit
    if not _COMMIT.fullmatch(commit) or not folder.is_dir():
        return None
    try:
        tree = get_cached_repo_tree(location, revision=commit)
        needed = choose_files([file.path for file in tree], location, is_trusted)
    except CachedRepoTreeNotFoundError:
        return folder if is_whole(folder, is_trusted) else None
    except ModelLoadError:
        return None
    return folder if all((folder / name).is_file() for name in needed) else None


def check_revision(location: str, revision: str | None) -> str | None:
    """Return the revision; raise ModelLoadError if it cannot be a commit, tag or branch."""
    if revision is not None and (not re.fullmatch(r"\w[\w./+-]*", revision) or ".." in revision):
        raise ModelLoadError(
            f"{location}: {revision!r} is no revision; give a commit, tag or branch of the hub"
        )
    return revision


@contextmanager
def explain_failures(location: str, revision: str | None) -> Iterator[None]:
    """Replace the hub library's errors by ModelLoadError with cause and advice."""
    at = f" at revision {revision}" if revision else ""
    try:
        yield
    except GatedRepoError as error:
        state = "the token at hand has no access" if get_token() else "there is no token here"
        raise ModelLoadError(
            f"{location}: is gated on the hub, and {state}; ask for access on the model's page, "
            "then `hf auth login` or set HF_TOKEN"
        ) from error
    except RevisionNotFoundError as error:
        raise ModelLoadError(
            f"{location}: the hub has the model, but no revision {revision!r}; check the commit, "
            "tag or branch in the catalogue"
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelLoadError(
            f"{location}: not a folder here, and the hub has no such model, or it is private; "
            "check the name, and for private models `hf auth login` or set HF_TOKEN"
        ) from error
    except HfHubHTTPError as error:
        raise ModelLoadError(
            f"{location}{at}: the hub answered {error.response.status_code}; try again later"
        ) from error
    except (httpx2.HTTPError, OSError, ValueError, TypeError, KeyError) as error:
        if getattr(error, "errno", None) is not None and not isinstance(error, ConnectionError):
            raise  # an error of the disk, not of the hub
        raise ModelLoadError(
            f"{location}{at}: not a folder here, not in the cache, and the hub did not give it "
            f"({first_line(error)}); check the name, the revision, the network"
        ) from error
