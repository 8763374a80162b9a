"""`tidemark xray`: token losses of chosen documents under two models, as a table and as pages."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.cells.losses import Cell
from core.cells.tokens import path_of_tokens, read_tokens, to_parquet
from core.corpus.partition import Partition, Seal, read_documents, read_seal
from core.errors import BatchTooLarge, NotMeasurable, UnknownName, UsageError
from core.periods import parse_period
from core.schemas.tables import TOKEN_LOSSES
from core.settings import Settings
from core.storage.store import Store, writing_file
from extras.xray import rendering
from extras.xray.min_k import SHARES, min_k, min_k_plus
from instruments.losses import KEYS, scoring_ids
from instruments.models import held, scorer_of
from models.backends import identify
from models.catalogue import ModelEntry, find_model
from models.scoring.protocol import ScoringProtocol
from models.scoring.protocols import get_protocol
from models.scoring.scorer import tokens_table
from models.scoring.token_scorer import TokenScorer

TABLE = "tokens.parquet"


class XrayedDocument(NamedTuple):
    """A document of which a page was written."""

    page: str  # name of the file
    view: rendering.XrayView


def write_xrays(
    settings: Settings, documents: Sequence[str], models: Sequence[str], protocol: str,
    with_min_k: bool, folder: Path,
) -> list[XrayedDocument]:  # fmt: skip
    """Write token losses as one Parquet file, and a page per document, into a folder.

    Token losses that were kept when the cell was scored are read. Others are computed in the
    batches of a scoring pass. ``documents`` are SOURCE/MONTH/ID. Min-K%++ needs a pass of each
    model. Return the page of each document, and what it shows.

    Raises:
        UsageError: there are not two models, or a document is unknown, malformed or no text.
        NotMeasurable: a model has no losses of tokens, or the protocol does not suit.
        ModelError: a model cannot be loaded.
    """
    entries = [find_model(name, settings) for name in dict.fromkeys(models)]
    if len(entries) != 2:
        raise UsageError(f"an X-ray compares two models, found {len(entries)}; give --model twice")
    for entry in entries:
        if entry.backend.is_control:
            raise NotMeasurable(
                f"{entry.name} compresses a text as a whole, so it has no losses of tokens; name "
                "two language models"
            )
    store = Store(settings.home)
    partitions = _sealed(store, documents, settings)
    facts: dict[str, rendering.Facts] = {}
    for seal, ids in partitions:
        facts |= rendering.read_facts(store, seal, ids)
        for name in ids - facts.keys():
            hint = f"`tidemark sql` lists document_id of {seal.partition} in table documents"
            raise UnknownName("document", name, [], hint)
    way = get_protocol(protocol)
    tables = [
        pa.concat_tables(_trace(entry, *each, way, with_min_k, settings) for each in partitions)
        for entry in entries
    ]
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    told = []  # of the documents, in the metadata of the table
    parts = []
    for name, row in facts.items():
        compared = _aligned([each.filter(pc.equal(each["document_id"], name)) for each in tables])
        view = rendering.view_of(row, compared, list(map(_scores, compared)))
        _write(folder / f"{name}.html", rendering.write_page(view))
        parts += compared
        shown = {key: str(value) for key, value in row.items() if value and key != "text"}
        found.append(XrayedDocument(f"{name}.html", view))
        figures = [dataclasses.asdict(model) for model in view.models]
        flags = {"is_open": view.is_open, "simulated": view.is_simulated}
        told.append({**shown, "page": f"{name}.html", **flags, "models": figures})
    described = json.dumps({"documents": told}).encode()
    _write(folder / TABLE, to_parquet(pa.concat_tables(parts), described))
    return found


def _sealed(
    store: Store, names: Sequence[str], settings: Settings
) -> list[tuple[Seal, frozenset[str]]]:
    """Return the newest version of each document's partition, with the ids of its documents."""
    ids: dict[Partition, list[str]] = {}
    for name in names:
        parts = name.rsplit("/", 2)
        if len(parts) != 3 or not all(parts):
            raise UsageError(f"{name!r} is no document; expected SOURCE/YYYY-MM/ID, or undated")
        source, month, document_id = parts
        partition = Partition(source, None if month == "undated" else parse_period(month))
        ids.setdefault(partition, []).append(document_id)
    found = []
    for partition, chosen in ids.items():
        seal = read_seal(store, partition, settings.corpus_as_of)
        if seal is None or not seal.is_text:
            what = "has images or recordings" if seal else "is not sealed"
            raise UsageError(f"{partition} {what}; an X-ray needs a sealed month of texts")
        found.append((seal, frozenset(chosen)))
    return found


def _trace(
    entry: ModelEntry, seal: Seal, ids: frozenset[str], protocol: ScoringProtocol,
    with_min_k: bool, settings: Settings,
) -> pa.Table:  # fmt: skip
    """Return the token losses of a model on documents of a partition, kept ones if possible."""
    store = Store(settings.home)
    identity = identify(entry, settings)
    cell = Cell(
        model=identity.name,
        revision=identity.revision,
        partition=seal.partition,
        partition_digest=seal.digest,
        protocol=protocol.name,
        scoring=scoring_ids(identity, [protocol], [seal], store)[seal.digest, protocol.name],
    )
    path = path_of_tokens(cell)
    kept = TOKEN_LOSSES.empty_table()
    if store.exists(path) and not with_min_k:
        kept = read_tokens(store, path, ids)
    missing = ids - set(pc.unique(kept["document_id"]).to_pylist())
    if not missing:
        return kept
    with held.hold(scorer_of, entry, identity.revision, settings) as scorer:
        if not isinstance(scorer, TokenScorer):
            raise NotMeasurable(f"{entry.name} has no losses of tokens; name a language model")
        while True:
            documents = read_documents(store, seal, columns=[*KEYS, "text"])
            try:
                losses = scorer.trace(documents, protocol, missing, with_min_k)
            except BatchTooLarge:
                continue  # restart; the scorer has reduced its batch size
            return pa.concat_tables([kept, tokens_table(cell, losses)])


def _aligned(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Return the token losses of two models on a document with ``segment_index``."""
    if not all(table.num_rows for table in tables):
        raise NotMeasurable("a document has no scored tokens under this protocol")
    sides = list(map(rendering.Side.of, tables))
    boundaries = rendering.common_boundaries(sides)
    indices = [rendering.segments_of(side, boundaries) for side in sides]
    columns = [pa.array(each, pa.int32(), mask=each < 0) for each in indices]
    last = len(TOKEN_LOSSES) - 1
    return [
        table.set_column(last, TOKEN_LOSSES.field(last), column)
        for table, column in zip(tables, columns, strict=True)
    ]


def _scores(tokens: pa.Table) -> dict[str, float | None]:
    """Return Min-K% of a model's tokens, and Min-K%++ if the tokens have moments."""
    nats, *moments = (tokens[name].to_numpy() for name in TOKEN_LOSSES.names[-4:-1])
    scores = {f"Min-{share:.0%}": min_k(nats, share) for share in SHARES}
    if tokens["mean_ln_p_nats"].null_count < tokens.num_rows:
        both = np.column_stack(moments)
        scores |= {f"Min-{share:.0%}++": min_k_plus(nats, both, share) for share in SHARES}
    return scores


def _write(path: Path, content: bytes) -> None:
    with writing_file(path) as staged:
        staged.write_bytes(content)
