"""Hand-marked texts, and the F1 of an extractor's output against them."""

import contextlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from core.corpus.partition import Seal, read_documents
from core.errors import ItemFailed, ItemUnavailable
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import Document, Drop, Item
from crawlers.web import pacing
from simulator.server import Web, serve, serve_sites
from tests.crawlers.clock import SimulatedTime

MARKED = Path(__file__).parent / "marked"
Crawl = Callable[..., list[Item]]


@pytest.fixture
def site() -> Any:
    """Return None: all sites of the module's ``WORLD`` are served; modules replace this fixture."""
    return None


@pytest.fixture
def web(request: pytest.FixtureRequest, site: Any) -> Iterator[Web]:
    """Serve the site of fixture ``site``, or a list of sites."""
    with serving(site, request.module) as running:
        yield running


def serving(site: Any, module: ModuleType) -> contextlib.AbstractContextManager[Web]:
    """Serve a site or a list of them, or all of a module's ``WORLD`` for None."""
    if site is None:
        return serve(module.WORLD)
    return serve_sites(site if isinstance(site, list) else [site])


@pytest.fixture
def own(request: pytest.FixtureRequest, settings: Settings, web: Web) -> Settings:
    """Return settings with the addresses of the served sites, and the module's ``TOKENS``."""
    tokens = getattr(request.module, "TOKENS", {})
    return settings.model_copy(update={"sites": dict(web.urls), "tokens": tokens})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimulatedTime:
    simulated = SimulatedTime()
    monkeypatch.setattr(pacing, "time", simulated)
    return simulated


def rows_of(store: Store, seal: Seal) -> list[dict[str, Any]]:
    return [row for batch in read_documents(store, seal) for row in batch.to_pylist()]


def documents_of(items: list[Item]) -> list[Document]:
    return [item for item in items if isinstance(item, Document)]


def drops_of(items: list[Item]) -> list[Drop]:
    return [item for item in items if isinstance(item, Drop)]


def by_id(items: list[Item]) -> dict[str, Document]:
    return {document.native_id: document for document in documents_of(items)}


def reasons_of(items: list[Item]) -> dict[str, str]:
    return {drop.native_id: drop.reason for drop in drops_of(items)}


def count_drops(items: list[Item]) -> Counter[str]:
    return Counter(drop.reason for drop in drops_of(items))


def token_f1(found: str, right: str) -> float:
    """Return the F1 of the tokens (words, and single signs) that two texts share, as multisets."""
    bags = [Counter(re.findall(r"\w+|[^\w\s]", text)) for text in (found, right)]
    num_common = sum((bags[0] & bags[1]).values())
    return 2 * num_common / (sum(bags[0].values()) + sum(bags[1].values()))


def marked(source: str, marked: Path = MARKED) -> list[tuple[Path, str]]:
    """Return the documents of ``marked/<source>``: the raw file and its ``.expected.txt``."""
    folder = marked / source
    texts = sorted(folder.glob("*.expected.txt"))
    if len(texts) < 10:
        pytest.fail(f"{folder} has {len(texts)} marked documents; expected at least 10")
    pairs = []
    for text in texts:
        stem = text.name.removesuffix(".expected.txt")
        [raw] = [path for path in folder.glob(f"{stem}.*") if path != text]
        pairs.append((raw, text.read_text(encoding="utf-8")))
    return pairs


_WORDS = (
    "the", "of", "and", "in", "a", "was", "with", "from", "that", "for", "on", "by", "the",
    "of", "and", "in", "a", "near", "under", "after", "before", "during", "old", "new",
    "small", "large", "quiet", "heavy", "northern", "local", "public", "early", "late",
    "several", "every", "another", "first", "river", "bridge", "market", "school", "harbour",
    "village", "council", "garden", "engine", "letter", "winter", "summer", "morning",
    "teacher", "farmer", "painter", "sailor", "doctor", "builder", "writer", "visitor",
    "neighbour", "captain", "question", "answer", "carried", "opened", "closed", "painted",
    "built", "described", "measured", "followed", "crossed", "repaired", "sold", "found",
    "slowly", "often", "never", "together", "again", "perhaps", "already", "almost",
    "because", "while", "where", "although", "between",
)  # fmt: skip


def prose(key: object, num_words: int = 60) -> str:
    """Return English sentences, the same for the same key, and different for different keys."""
    rng = random.Random(str(key))
    words = [rng.choice(_WORDS) for _ in range(num_words)]
    sentences = (words[begin : begin + 12] for begin in range(0, num_words, 12))
    return " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)


@contextlib.contextmanager
def refused(
    reason: str,
    match: str | None = None,
    kind: type[ItemUnavailable | ItemFailed] = ItemUnavailable,
) -> Iterator[None]:
    with pytest.raises(kind, match=match) as caught:
        yield
    assert caught.value.reason == reason
