"""X-rays: a text coloured by how much more one model is surprised by each piece than another.

Two tokenizers cut a text differently. So tokens are joined to segments: the bytes between two
offsets that are boundaries of tokens for both models. A page also joins segments that split a
character.
"""

from __future__ import annotations

import hashlib
import math
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from core.cells.tokens import is_open
from core.corpus.partition import Seal, read_documents
from core.corpus.simulated import is_simulated
from core.storage.store import Store
from reports.site.build import environment

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Facts = Mapping[str, Any]  # a document's row, with the columns FACTS
Scores = Mapping[str, float | None]
FACTS = ["document_id", "source", "month", "title", "url", "licence", "attribution", "text"]
LEVELS = (0.5, 2.0, 4.0)  # bits of a segment from which a stronger colour begins
# Control characters have no shape; these signs stand for them. Line breaks and tabs stay.
_SIGNS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: 0x2421}


@dataclass(frozen=True)
class Side:
    """The scored tokens of one model on a document, in order."""

    model: str
    begins: Integers
    ends: Integers
    nats: Floats

    @classmethod
    def of(cls, tokens: pa.Table) -> Side:
        """Return the side of a model's rows of schema TOKEN_LOSSES."""
        columns = (tokens[name].to_numpy() for name in ("begin_byte", "end_byte", "nll_nats"))
        return cls(tokens["model"][0].as_py(), *columns)


@dataclass(frozen=True)
class ModelFigures:
    """The sums over the tokens of a document that one model scored, and its scores by name."""

    name: str
    num_tokens: int
    nats: float
    num_bytes: int
    scores: Scores


@dataclass(frozen=True)
class XrayView:
    """The contents of a page: a document, and two models on it."""

    facts: Facts
    title: str
    url: str  # empty if it is no web address
    is_open: bool  # True if the licence allows to show the text
    is_simulated: bool
    protocol: str
    models: list[ModelFigures]
    pieces: list[ShownPiece]
    before: str  # text before the scored pieces, and after them
    after: str
    levels: tuple[float, ...] = LEVELS


class ShownPiece(NamedTuple):
    """A piece of text on a page: its class of colour, and its figures for the tooltip."""

    text: str
    level: str
    title: str


def common_boundaries(sides: Sequence[Side]) -> Integers:
    """Return the byte offsets that are boundaries of tokens for all sides, ascending."""
    return reduce(np.intersect1d, (np.union1d(side.begins, side.ends) for side in sides))


def segments_of(side: Side, boundaries: Integers) -> Integers:
    """Return the index of the segment that contains each token, or -1 if none does.

    A token without text belongs to the segment that ends there, or else to the first.
    """
    if len(boundaries) < 2:
        return np.full(len(side.ends), -1)
    is_inside = (side.begins >= boundaries[0]) & (side.ends <= boundaries[-1])
    found = np.maximum(np.searchsorted(boundaries, side.ends) - 1, 0)
    return np.where(is_inside, found, -1)


def sum_segments(side: Side, boundaries: Integers) -> Floats:
    """Return the loss of each segment in nats; NaN if a part of its bytes is not scored."""
    num = max(len(boundaries) - 1, 0)
    segments = segments_of(side, boundaries)
    is_inside = segments >= 0
    inside = segments[is_inside]
    nats = np.bincount(inside, side.nats[is_inside], num)
    covered = np.bincount(inside, (side.ends - side.begins)[is_inside], num)
    return np.where(covered == np.diff(boundaries), nats, np.nan)


def read_facts(store: Store, seal: Seal, ids: Collection[str]) -> dict[str, Facts]:
    """Return the rows of documents of a partition, by document id."""
    wanted = pa.array(sorted(ids), pa.string())
    found: dict[str, Facts] = {}
    for batch in read_documents(store, seal, columns=FACTS):
        rows = batch.filter(pc.is_in(batch["document_id"], wanted)).to_pylist()
        found |= {row["document_id"]: row for row in rows}
    return found


def view_of(facts: Facts, tables: Sequence[pa.Table], scores: Sequence[Scores]) -> XrayView:
    """Return what a page shows of a document, from the token losses of two models on it.

    ``scores``: further scores of each model, by name.
    """
    raw = facts["text"].encode()
    sides = [Side.of(table) for table in tables]
    codes = np.frombuffer(raw + b" ", dtype=np.uint8)
    characters = np.flatnonzero((codes & 0xC0) != 0x80)  # offsets at which no character is split
    boundaries = np.intersect1d(common_boundaries(sides), characters)
    first, last = (int(boundaries[0]), int(boundaries[-1])) if len(boundaries) else (0, 0)
    url = facts["url"] or ""
    return XrayView(
        facts=facts,
        title=facts["title"] or facts["document_id"],
        url=url if url.startswith(("https://", "http://")) else "",
        is_open=is_open(facts["licence"]),
        is_simulated=is_simulated(facts["licence"]),
        protocol=tables[0]["protocol"][0].as_py(),
        models=[
            ModelFigures(side.model, len(side.nats), float(side.nats.sum()),
                         int((side.ends - side.begins).sum()), each)
            for side, each in zip(sides, scores, strict=True)
        ],
        pieces=list(_pieces(raw, sides, boundaries)),
        before=_visible(raw[:first]),
        after=_visible(raw[last:]),
    )  # fmt: skip


def _pieces(raw: bytes, sides: Sequence[Side], boundaries: Integers) -> Iterator[ShownPiece]:
    """Yield pieces of the text with the colour of the model that predicts them better."""
    one, other = (sum_segments(side, boundaries) for side in sides)
    bits = (one - other) / math.log(2)
    levels = np.digitize(np.abs(bits), LEVELS)
    for index, (begin, end) in enumerate(pairwise(boundaries.tolist())):
        text = _visible(raw[begin:end])
        level = levels[index]
        if math.isnan(bits[index]):
            yield ShownPiece(text, "none", "")
        else:
            better = "a" if bits[index] > 0 else "b"
            colour = f"{better}{level}" if level else ""
            yield ShownPiece(text, colour, f"{begin}–{end} · {one[index]:.2f} · {other[index]:.2f}")


def _visible(raw: bytes) -> str:
    return raw.decode(errors="replace").translate(_SIGNS)


def write_page(view: XrayView) -> bytes:
    """Return one HTML file with style and script inside, which requests nothing."""
    style = _asset("reports.site", "site.css") + _asset("extras.xray", "xray.css")
    script = _asset("extras.xray", "xray.js")
    template = environment().get_template("xray_alone.html.j2")
    policy = f"default-src 'none'; style-src {_hashed(style)}; script-src {_hashed(script)}"
    # Markup disables escaping: the two assets are files of this package.
    inside = {"style": Markup(style), "script": Markup(script)}  # noqa: S704
    return template.render(x=view, policy=policy, **inside).encode()


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(package: str, name: str) -> str:
    return files(package).joinpath("assets", name).read_text(encoding="utf-8")
