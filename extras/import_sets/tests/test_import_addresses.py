"""`import set`, `import texts` and `land losses` take addresses, here of a site on loopback."""

import datetime as dt
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.corpus.partition import list_sealed
from core.schemas.tables import LOSSES
from core.storage.store import Store
from simulator.server import Request, Response
from tests.loopback import serving
from tests.losses import loss_row

Tidemark = Callable[..., Any]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
LINES = "".join(
    json.dumps({"content": f"{number} {name}: " + "sand and tide " * 20, "category": name}) + "\n"
    for number in range(2)
    for name in ("bbc_news", "arxiv_cs")
).encode()


def _losses() -> bytes:
    rows = [loss_row("m", "news", dt.date(2024, 1, 1), f"d{number}") for number in range(3)]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=LOSSES), file)
    return file.getvalue()


@pytest.fixture
def site() -> Iterator[str]:
    bodies = {
        "/datasets/o/UncheatableEval/resolve/v1/test.jsonl": LINES,
        "/texts.json": json.dumps(["sand and tide, " * 20]).encode(),
        "/losses.parquet": _losses(),
    }

    def respond(request: Request) -> Response:
        body = bodies.get(request.path)
        headers = {"X-Repo-Commit": COMMIT, "ETag": '"v1"'}
        return Response(404) if body is None else Response(200, headers, body)

    with serving(respond) as url:
        yield url


def test_a_set_of_the_hub_is_pinned_in_the_manifest(
    tidemark: Tidemark, home: Path, site: str
) -> None:
    address = "hf://datasets/o/UncheatableEval@v1/test.jsonl"
    ran = tidemark(
        "import", "set", address, "--source", "ue", "--column", "text=content",
        "--source-column", "category", "--month", "2024-05", sites__huggingface=site,
    )  # fmt: skip
    assert ran.out.splitlines() == [
        "ue:arxiv_cs 2024-05: 2 documents", "ue:bbc_news 2024-05: 2 documents",
    ]  # fmt: skip
    for seal in list_sealed(Store(str(home))):
        [origin] = seal.manifest["origins"]  # type: ignore[misc]
        assert origin["address"] == address
        assert (origin["revision"], origin["etag"]) == (COMMIT, '"v1"')
        assert origin["num_bytes"] == len(LINES)
        assert seal.manifest["file"] == "test.jsonl"


def test_texts_by_address_and_what_is_refused(tidemark: Tidemark, home: Path, site: str) -> None:
    command = ("import", "texts", f"{site}/texts.json", "--source", "own", "--month", "2024-05")
    refused = tidemark(*command)
    assert refused.code == 1 and "is not https" in refused.err
    assert not list_sealed(Store(str(home)))
    tidemark(*command, sites__mine=site).expect(0, out="own 2024-05: 1 document\n")
    [seal] = list_sealed(Store(str(home)))
    [origin] = seal.manifest["origins"]  # type: ignore[misc]
    assert origin["address"] == f"{site}/texts.json"
    assert "revision" not in origin
    gone = tidemark("import", "set", f"{site}/no", "--source", "own", sites__mine=site)
    assert gone.code == 1 and "answered 404" in gone.err


@pytest.mark.long
def test_losses_by_address_land(tidemark: Tidemark, site: str) -> None:
    ran = tidemark("land", "losses", f"{site}/losses.parquet", sites__mine=site).expect(0)
    assert "1 of 1 file landed" in ran.out
    assert f"brought address {site}/losses.parquet, sha256 " in ran.out
    ran = tidemark("sql", "select count(*) from chunk_losses", "--format", "csv").expect(0)
    assert ran.out.splitlines()[1:] == ["3"]
