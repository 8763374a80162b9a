import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from core.errors import NotMeasurable, TidemarkError, UnknownName, UsageError
from core.settings import Settings
from core.storage.store import Store
from extras.xray import tracing
from extras.xray.pages import link_of_source, make_pages
from extras.xray.tracing import write_xrays
from instruments.losses import score_and_land
from reports.site.build import write_site
from tests.instruments.test_kept_tokens import (
    PROTOCOL,
    Names,
    assert_sums,
    ids,
    models,
    read,
    score,
)

__all__ = ["ids", "models"]


def xray(
    settings: Settings, ids: Names, models: Names, folder: Path, with_min_k: bool = False
) -> pl.DataFrame:
    names = [f"mine/2024-03/{name}" for name in ids]
    write_xrays(settings, names, models, PROTOCOL, with_min_k, folder)
    return read(folder / "tokens.parquet")


@pytest.mark.parametrize("with_min_k", [False, True])
def test_an_xray_has_the_losses_of_a_scoring_pass(
    settings: Settings, models: Names, ids: Names, tmp_path: Path, with_min_k: bool
) -> None:
    score(settings.model_copy(update={"kept_documents": 0}), models)
    tokens = xray(settings, ids, models, tmp_path / "out", with_min_k)
    assert_sums(tokens, settings)
    assert tokens["segment_index"].null_count() == 0
    places = ["document_id", "segment_index"]
    bounds = tokens.group_by(*places, "model").agg(pl.min("begin_byte"), pl.max("end_byte"))
    distinct = bounds.group_by(places).agg(pl.n_unique("model", "begin_byte", "end_byte"))
    assert distinct.drop(places).unique().rows() == [(2, 1, 1)]
    assert tokens["mean_ln_p_nats"].is_null().all() != with_min_k
    raw = pq.read_schema(tmp_path / "out" / "tokens.parquet").metadata[b"tidemark"]
    documents = json.loads(raw)["documents"]
    assert {each["document_id"] for each in documents} == set(ids)
    scores = documents[0]["models"][0]["scores"]
    assert ("Min-20%++" in scores, "Min-20%" in scores) == (with_min_k, True)
    assert all((tmp_path / "out" / f"{name}.html").exists() for name in ids)


def test_kept_losses_are_read(
    settings: Settings, models: Names, ids: Names, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    score(settings, models)
    monkeypatch.setattr(tracing, "held", None)  # nothing loads a model
    assert_sums(xray(settings, ids[:-1], models, tmp_path), settings)
    with pytest.raises(AttributeError):
        xray(settings, ids, models, tmp_path)


def test_what_cannot_be_compared_is_refused(
    settings: Settings, models: Names, ids: Names, tmp_path: Path
) -> None:
    def refuses(
        error: type[TidemarkError], says: str, name: str, models: Names = models,
        protocol: str = PROTOCOL,
    ) -> None:  # fmt: skip
        with pytest.raises(error, match=says):
            write_xrays(settings, [name], models, protocol, False, tmp_path / "out")

    name = f"mine/2024-03/{ids[0]}"
    zstd = [models[0], "control:zstd"]
    refuses(NotMeasurable, "control:zstd compresses a text as a whole", name, models=zstd)
    refuses(NotMeasurable, "joins documents to one stream", name, protocol="stream-24-8")
    refuses(UsageError, "compares two models, found 1", name, models=models[:1] * 2)
    refuses(UsageError, "expected SOURCE/YYYY-MM/ID", "mine")
    refuses(UsageError, "'2024' is not a month", f"mine/2024/{ids[0]}")
    refuses(UsageError, "mine 2024-04 is not sealed", f"mine/2024-04/{ids[0]}")
    refuses(UnknownName, "unknown document 'none'", "mine/2024-03/none")
    assert not (tmp_path / "out").exists()


@pytest.mark.smoke
def test_pages_of_two_models(settings: Settings, models: Names, ids: Names) -> None:
    score(settings, models)
    known = {"merges": {"cutoff": None, "released": 2024}, "bytes": {"cutoff": 2023}, "c": {}}
    site: Any = SimpleNamespace(
        store=Store(settings.home),
        protocol=PROTOCOL,
        sources=["mine"],
        models=known,
        source_page=str,
    )
    index, *pages = make_pages(site)
    link = link_of_source(site, "mine")
    assert link is not None and index.path == link.address == "xray/mine/index.html"
    assert {Path(page.path).stem for page in pages} == set(ids[:-1])
    assert index.fields["models"] == ["bytes", "merges"]  # the older one first
    known.pop("bytes")  # such as a model that is not published
    assert list(make_pages(site)) == []


@pytest.mark.slow
@pytest.mark.long
def test_the_site_has_them(settings: Settings, models: Names, ids: Names) -> None:
    settings = settings.model_copy(update={"protocol": PROTOCOL})
    assert score_and_land(settings, models, None, None, [PROTOCOL])[1] == []
    root = Path(write_site(settings)).parent
    assert 'href="../xray/mine/index.html"' in (root / "sources/mine.html").read_text()
    assert f'href="{ids[0]}.html"' in (root / "xray/mine/index.html").read_text()
    page = (root / f"xray/mine/{ids[0]}.html").read_text()
    assert re.search(r'<span class="[ab]\d" title="0–', page) and "assets/xray.js" in page
