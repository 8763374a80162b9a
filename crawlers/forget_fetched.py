"""Takedown in what was fetched: the raw HTTP cache, and the mirrors of repositories.

One answer may hold many documents, or one in a form that cannot be searched (an archive, a page of
a list). So all that the sites of a document have answered goes: it is a cache, a later crawl
fetches again what it needs.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from core.corpus import Seal
from core.settings import Settings
from core.storage import explain_disk_errors
from crawlers.contract import list_sources, load_crawler
from crawlers.raw_cache import RawCache


@dataclass(frozen=True)
class Origin:
    """Where a document came from: its address, and the seal that it is under."""

    url: str | None
    native_id: str
    seal: Seal


def forget_fetched(settings: Settings, origins: Iterable[Origin]) -> int:
    """Delete what was fetched from the documents' sites; return how many answers and mirrors.

    Raises:
        StorageError: a file cannot be deleted.
    """
    origins = list(origins)
    hosts = {host for origin in origins for host in _hosts(origin, settings)}
    num = RawCache(settings.scratch / "http-cache").forget(hosts) if hosts else 0
    return num + _forget_mirrors(settings, origins)


def _hosts(origin: Origin, settings: Settings) -> set[str]:
    """The hosts, with their ports, that may have sent a document."""
    urls = [origin.url or ""]
    bases = origin.seal.manifest.get("base_urls")
    urls += bases.values() if isinstance(bases, dict) else []
    source = origin.seal.partition.source
    hosts = set()
    if source in list_sources():
        info = load_crawler(source).INFO
        sites = info.all_sites(_languages(origin.seal))
        urls += [settings.sites.get(key, url) for key, url in sites.items()]
        hosts |= {host.lower() for host in info.redirect_hosts}
    return hosts | {urlsplit(url).netloc.lower() for url in urls if urlsplit(url).netloc}


def _languages(seal: Seal) -> tuple[str, ...]:
    languages = seal.manifest.get("languages")
    return tuple(map(str, languages)) if isinstance(languages, list) else ()


def _forget_mirrors(settings: Settings, origins: Collection[Origin]) -> int:
    """Delete the mirrors of the repositories that documents are from; they are cloned anew."""
    num = 0
    for folder in settings.scratch.glob("git/*/*/*.git*"):
        name = f"{folder.parent.name}/{folder.name.partition('.git')[0]}"
        if any(_is_of(origin, name) for origin in origins):
            with explain_disk_errors(str(folder)):
                shutil.rmtree(folder) if folder.is_dir() else folder.unlink()
            num += 1
    return num


def _is_of(origin: Origin, repository: str) -> bool:
    in_url = f"{urlsplit(origin.url or '').path.strip('/')}/".startswith(f"{repository}/")
    return in_url or origin.native_id.startswith((f"{repository}:", f"{repository}@"))
