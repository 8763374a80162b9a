"""Takedown of downloaded data: deletes cached HTTP responses and mirrors of repositories.

One response may contain many documents, or cannot be searched (an archive, for example). So all
responses of a document's sites are deleted. A later crawl fetches them again.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from core.corpus.partition import Seal
from core.settings import Settings
from core.storage.store import explain_disk_errors
from crawlers.registry import is_source, load_crawler
from crawlers.web.raw_cache import RawCache


@dataclass(frozen=True)
class Origin:
    """The origin of a document: its URL, its native id and the seal of its partition."""

    url: str | None
    native_id: str
    seal: Seal


def forget_fetched(settings: Settings, origins: Iterable[Origin]) -> int:
    """Delete the sites' cached responses and the repositories' mirrors; return their number."""
    origins = list(origins)
    hosts = {host for origin in origins for host in _hosts(origin, settings)}
    num = RawCache(settings.scratch / "http-cache").forget(hosts) if hosts else 0
    return num + _forget_mirrors(settings, origins)


def _hosts(origin: Origin, settings: Settings) -> set[str]:
    """Return the hosts that the documents' source was or is fetched from."""
    urls = [origin.url or ""]
    bases = origin.seal.manifest.get("base_urls")
    urls += bases.values() if isinstance(bases, dict) else []
    source = origin.seal.partition.source
    hosts = set()
    if is_source(source):
        info = load_crawler(source).INFO
        languages = origin.seal.manifest.get("languages")
        sites = info.all_sites(tuple(map(str, languages)) if isinstance(languages, list) else ())
        urls += [settings.sites.get(key, url) for key, url in sites.items()]
        hosts |= {host.lower() for host in info.redirect_hosts}
    return hosts | ({_split(url).netloc.lower() for url in urls} - {""})


def _forget_mirrors(settings: Settings, origins: Collection[Origin]) -> int:
    """Delete the git mirrors of the documents' repositories; return their number."""
    num = 0
    for folder in settings.scratch.glob("git/*/*/*.git*"):
        name = f"{folder.parent.name}/{folder.name.partition('.git')[0]}"
        if any(_is_of(origin, name) for origin in origins):
            with explain_disk_errors(str(folder)):
                if folder.is_dir():
                    shutil.rmtree(folder)
                else:
                    folder.unlink()
            num += 1
    return num


def _is_of(origin: Origin, repository: str) -> bool:
    in_url = f"{_split(origin.url).path.strip('/')}/".startswith(f"{repository}/")
    return in_url or origin.native_id.startswith((f"{repository}:", f"{repository}@"))


def _split(url: str | None) -> SplitResult:
    """Return the parts of a URL; the URL of an imported text may be invalid and has no parts."""
    try:
        return urlsplit(url or "")
    except ValueError:
        return urlsplit("")
