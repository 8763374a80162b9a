"""X-rays: pages of the documents whose token losses were kept, of each source's newest month."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.compute as pc

from core.cells.tokens import ROOT, is_open, read_tokens
from core.corpus.partition import list_versions, partition_of
from core.storage.store import name_of_part, path_part
from extras.xray.rendering import Facts, read_facts, view_of
from reports.site.context import Site
from reports.site.figure import Link, Page, slug

ORDER = 12
NAVIGATION = None
PATHS = ("xray/*",)


def make_pages(site: Site) -> Iterator[Page]:
    """Yield a list per source with kept token losses, and a page per document."""
    for source in site.sources:
        kept = _newest(site, source)
        if kept:
            yield from _pages(site, source, kept)


def link_of_source(site: Site, source: str) -> Link | None:
    """Return the link to a source's list of X-rays; None if two models have no kept losses."""
    if not _newest(site, source):
        return None
    about = "openly licensed documents, token by token, under two models"
    return Link(f"xray/{slug(source)}/index.html", "X-rays", about)


def _newest(site: Site, source: str) -> dict[str, str]:
    """Return the path of kept losses by model: of the oldest and the newest on the newest text."""
    texts: dict[tuple[str, str], dict[str, str]] = {}  # by month, and digest of the version
    protocol = path_part(site.protocol)
    folder = f"{ROOT}/model=*/source={path_part(source)}/month=*"
    if site.store is None:
        return {}
    for path in site.store.list(f"{folder}/{protocol}-*.parquet"):
        _, folder, _, month, name = path.split("/")
        stated, _, digest, _ = name.rsplit("-", 3)
        model = name_of_part(folder.removeprefix("model="))
        if stated == protocol and model in site.models:
            texts.setdefault((month, digest), {})[model] = path
    several = [text for text, paths in texts.items() if len(paths) > 1]
    if not several:
        return {}
    paths = texts[max(several)]
    oldest, *_, newest = sorted(paths, key=lambda model: (_age(site.models[model]), model))
    return {model: paths[model] for model in (oldest, newest)}


def _age(known: Mapping[str, Any]) -> str:
    return str(known["cutoff"] or known["released"] or "")


def _pages(site: Site, source: str, kept: Mapping[str, str]) -> Iterator[Page]:
    """Yield the pages that show, for open documents, which of two models predicts what better."""
    assert site.store is not None  # noqa: S101 - ``_newest`` has found files
    tables = [read_tokens(site.store, path) for path in kept.values()]
    ids = set.intersection(*(set(pc.unique(table["document_id"]).to_pylist()) for table in tables))
    path = next(iter(kept.values()))
    partition = partition_of(path.partition("/")[2])
    digest = path.rsplit("-", 2)[1]
    facts: dict[str, Facts] = {}
    for seal in list_versions(site.store, partition):
        if seal.digest.startswith(digest):
            facts |= read_facts(site.store, seal, ids)
    shown = {name: each for name, each in facts.items() if is_open(each["licence"])}
    index = f"xray/{slug(source)}/index.html"
    listed = sorted((each["title"] or name, name) for name, each in shown.items())
    fields = {"source": source, "month": partition.month, "documents": listed,
              "back": site.source_page(source), "models": list(kept)}  # fmt: skip
    yield Page(index, f"X-rays of {source}", "xrays.html.j2", fields=fields)
    for name, each in shown.items():
        parts = [table.filter(pc.equal(table["document_id"], name)) for table in tables]
        view = {"x": view_of(each, parts, [{}, {}]), "index": index}
        path = f"{index.rpartition('/')[0]}/{name}.html"
        yield Page(path, each["title"] or name, "xray.html.j2", fields=view)
