import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from core.cells.tokens import choose_documents, is_open
from core.corpus.partition import Partition, list_sealed
from core.corpus.takedown import forget_losses, forget_pages
from core.errors import NotMeasurable, TidemarkError, UnknownName, UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.imports.texts import ImportOptions, import_texts
from instruments import xray as xray_module
from instruments.losses import plan_scoring, score_and_land, write_losses
from instruments.xray import write_xrays
from reports.site.build import write_site
from reports.site.pages.xray import index_of, make_pages
from tests.models import conftest as tiny

Names = list[str]
PROTOCOL = "disjoint-32"
TEXTS = [*tiny.SENTENCES, " ".join(tiny.SENTENCES * 3), "x", "مرحبا 👩‍👩‍👧 <b>"]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("two")
    tokenizers = {"merges": tiny.byte_level_bpe(), "bytes": tiny.byte_fallback_bpe()}
    return [
        tiny.save_model(folder / name, tiny.llama_config(), each, bos_token="<s>")
        for name, each in tokenizers.items()
    ]


@pytest.fixture
def ids(store: Store, tmp_path: Path) -> list[str]:
    """Seal texts, of which the last one has no open licence; return their ids."""
    partition = Partition("mine", Month("2024-03"))
    rows = [{"text": text, "licence": "CC-BY-4.0"} for text in TEXTS]
    rows[-1]["licence"] = "LicenseRef-unknown"
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    seal = import_texts(file, partition, store, ImportOptions(min_chars=1))
    table = pq.read_table(store.url(seal.parts[0]), partitioning=None)
    return [str(name) for name in table["document_id"].to_pylist()]


def score(settings: Settings, models: list[str], protocol: str = PROTOCOL) -> None:
    for model in models:
        plan = plan_scoring(model, [protocol], None, None, settings)
        write_losses(plan.cells, plan.entry, settings, wait=True)


def files(settings: Settings, root: str) -> dict[str, Path]:
    found = Path(settings.home).glob(f"{root}/*/*/*/*.parquet")
    return {str(path.relative_to(settings.home)).partition("/")[2]: path for path in found}


def read(*paths: Path) -> pl.DataFrame:
    return pl.concat(pl.read_parquet(path, hive_partitioning=False) for path in paths)


def xray(
    settings: Settings, ids: Names, models: Names, folder: Path, with_min_k: bool = False
) -> pl.DataFrame:
    names = [f"mine/2024-03/{name}" for name in ids]
    write_xrays(settings, names, models, PROTOCOL, with_min_k, folder)
    return read(folder / "tokens.parquet")


def assert_sums(tokens: pl.DataFrame, settings: Settings) -> None:
    keys = ["model", "document_id", "chunk_index"]
    sums = tokens.group_by(keys).agg(pl.sum("nll_nats"), pl.len(), pl.max("end_byte"))
    chunks = read(*files(settings, "losses").values())
    chunks = chunks.filter(pl.col("document_id").is_in(tokens["document_id"].to_list()))
    both = chunks.join(sums, on=keys, how="left")
    assert both["len"].to_list() == both["num_tokens"].to_list()
    assert both["nll_nats_right"].to_list() == pytest.approx(both["nll_nats"].to_list(), rel=1e-9)
    sizes = both.group_by("model", "document_id").agg(pl.sum("num_bytes"), pl.max("end_byte"))
    assert sizes["num_bytes"].to_list() == sizes["end_byte"].to_list()


@pytest.mark.parametrize("protocol", [PROTOCOL, "sliding-24-8", "lm-eval-16"])
def test_scoring_keeps_losses_whose_sums_are_the_chunks(
    settings: Settings, models: Names, ids: Names, protocol: str
) -> None:
    score(settings, models, protocol)
    kept = files(settings, "tokens")
    assert set(kept) == set(files(settings, "losses"))
    tokens = read(*kept.values())
    assert set(tokens["document_id"]) == set(ids[:-1])
    assert_sums(tokens, settings)


def test_files_of_losses_stay(settings: Settings, models: Names, ids: Names) -> None:
    found = []
    for number, num_tokens in ((20, 2), (0, 0)):  # a compressor has no tokens
        score(settings.model_copy(update={"kept_documents": number}), [*models, "control:zstd"])
        found.append({path: file.read_bytes() for path, file in files(settings, "losses").items()})
        assert len(files(settings, "tokens")) == num_tokens
        for file in [*files(settings, "losses").values(), *files(settings, "tokens").values()]:
            file.unlink()
    assert found[0] == found[1]


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
    monkeypatch.setattr(xray_module, "held", None)  # nothing loads a model
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
    assert index.path == index_of(site, "mine") == "xray/mine/index.html"
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


OPEN = ["CC-BY-SA-4.0", "CC-BY-SA-3.0 AND CC-BY-SA-4.0", "MIT", "OGL-UK-3.0",
        "LicenseRef-public-domain", "http://creativecommons.org/licenses/by/4.0/"]  # fmt: skip
CLOSED = ["CC-BY-NC-4.0", "CC-BY-ND-4.0", "https://creativecommons.org/licenses/by-nc-sa/4.0/",
          "http://arxiv.org/licenses/nonexclusive-distrib/1.0/", "MIT AND Other", ""]  # fmt: skip


def test_open_licences_are_known() -> None:
    assert [name for name in OPEN + CLOSED if is_open(name)] == OPEN


def test_the_choice_of_documents(
    store: Store, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    [seal] = list_sealed(store)
    first = sorted(ids[:-1], key=lambda name: name[16:])
    for number in (20, 3, 0):
        assert choose_documents(store, seal, number) == frozenset(first[:number])
    monkeypatch.setattr("core.cells.tokens.MAX_BYTES", 1)
    assert choose_documents(store, seal, 20) == {ids[TEXTS.index("x")]}
