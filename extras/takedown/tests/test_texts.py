"""Removal of documents from kept losses, and from what later months are compared with."""

from pathlib import Path

from core.corpus.lookup import find_documents
from core.corpus.partition import Partition
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from extras.takedown.texts import forget_in_sidecars, forget_losses, forget_pages, forget_texts
from tests.crawlers.hygiene.test_pipeline import (
    FEBRUARY,
    Sealing,
    near,
    prose,
    row,
)
from tests.instruments.test_kept_tokens import (
    Names,
    files,
    read,
    score,
)


def test_kept_losses_are_forgotten(settings: Settings, models: Names, ids: Names) -> None:
    score(settings, models)
    store = Store(settings.home)
    for name in (*ids, "index"):
        store.write_bytes(f"report/xray/mine/{name}.html", b"text")
        store.write_bytes(f"report/months/2024-03/xray/mine/{name}.html", b"text")
    forget_losses(store, [Partition("mine", Month("2024-03"))], ids[:1])
    forget_pages(store, ids[:1])
    assert set(read(*files(settings, "tokens").values())["document_id"]) == set(ids[1:-1])
    left = [Path(path).stem for path in store.list("report/**/*.html")]
    assert sorted(left) == sorted(ids[1:] * 2)


def test_a_forgotten_document_is_no_longer_compared(seal: Sealing, store: Store) -> None:
    rows = [row("a", prose("a", 200)), row("b", prose("b", 200))]
    february = seal(rows, FEBRUARY)
    id_ = february.rows[0]["document_id"]
    forget_texts(store, find_documents(store, [id_]))
    forget_in_sidecars(store, ["toy"], [id_])
    march = seal([row("near", near("a")), row("other", near("b"))])
    assert march.kept == ["near"]
    assert march.drops == {"other": "near_dup"}
