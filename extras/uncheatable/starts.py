"""Uncheatable Eval as it is since late 2025: texts of at most 3,800 tokens, and a start per model.

Based on its repository (github.com/Jellyfish042/uncheatable_eval): ``crawlers/post_process.py``,
``bos_mode_finder.py`` and ``evaluator.py``. Its sums are in bfloat16, ours in float64.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from core.errors import MalformedInput, NotMeasurable
from core.json import JsonObject
from models.scoring.protocols import UNCHEATABLE_STARTS, get_protocol
from models.scoring.text_model import Tokenizer
from models.scoring.token_scorer import TokenScorer

MAX_TOKENS = 3800  # per document, for each of several tokenizers; fits into one chunk of 4,000
NUM_DOCUMENTS = 500  # per category
_SEARCH = 100  # number of characters to look for a boundary before and after a cut
_MARGIN = 0.95  # share of the estimated length, because tokens are not equally long
_BOUNDARIES = frozenset(" \n\r\t\f\v.,;:!?。、，；：！？")


class StartFigure(NamedTuple):
    """A protocol of one start-token mode, and its figure on the development set."""

    protocol: str
    bits_per_byte: float


def read_set(path: Path) -> list[JsonObject]:
    """Read JSON lines in the form of its sets: objects with ``content`` and ``category``.

    A line with ``text`` gets it as its content. Raise MalformedInput for other lines, or a file
    that cannot be read.
    """
    records = []
    try:
        # Only a line feed ends a line of JSON; texts may have other separators.
        for line in filter(str.strip, path.read_text(encoding="utf-8").split("\n")):
            record = json.loads(line)
            records.append(record | {"content": str(record.get("content") or record["text"])})
    except OSError as error:
        raise MalformedInput(f"{path} cannot be read ({error})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedInput(
            f"{path}, text {len(records) + 1}: expected an object with content or text ({error!r})"
        ) from error
    return records


def documents_of(records: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Return the texts of a set as documents to score."""
    count = len(records)
    return pa.record_batch({
        "document_id": pa.array(map(str, range(count)), pa.string()),
        "source": pa.array([str(record.get("category", "set")) for record in records], pa.string()),
        "month": pa.nulls(count, pa.date32()),
        "text": pa.array([record["content"] for record in records], pa.large_string()),
    })  # fmt: skip


def prepare_set(
    records: Sequence[Mapping[str, Any]], tokenizers: Sequence[Tokenizer]
) -> list[JsonObject]:
    """Return the first 500 records of each category, with cut texts (``cut_text``)."""

    def count(text: str) -> int:
        return max(len(each.tokenize([text], True)[0].ids) for each in tokenizers)

    taken: Counter[str] = Counter()
    kept = []
    for record in records:
        category = str(record.get("category"))
        if taken[category] < NUM_DOCUMENTS:
            kept.append({**record, "content": cut_text(record["content"], count)})
            taken[category] += 1
    return kept


def cut_text(text: str, count: Callable[[str], int], max_tokens: int = MAX_TOKENS) -> str:
    """Normalise a text (NFC), and cut it at a boundary so that ``count`` is at most ``max_tokens``.

    ``count`` returns a text's largest number of tokens of several tokenizers.
    """
    text = unicodedata.normalize("NFC", text)
    kept = text.strip()
    target = len(kept)
    while (num_tokens := count(kept)) > max_tokens and target > 0:
        target = max(1, int(target * (max_tokens / num_tokens) * _MARGIN))
        kept = _cut_near(text, target)
        target = target if len(kept) > 1 else 0
    return kept


def _cut_near(text: str, target: int) -> str:
    """Cut after the last boundary up to ``target``, else after the next one, else at ``target``."""
    if len(text) <= target:
        return text.strip()
    before = range(target, max(0, target - _SEARCH) - 1, -1)
    after = range(target + 1, min(len(text), target + _SEARCH))
    places = (place for part in (before, after) for place in part if text[place] in _BOUNDARIES)
    return text[: next(places, target - 1) + 1].strip()


def choose_start(
    scorer: TokenScorer, documents: Sequence[pa.RecordBatch], chunk: int = 4000
) -> list[StartFigure]:
    """Return the figures of a model's start-token modes on a development set, the best first.

    The modes are those that add a token. If the tokenizer begins every text with the same token,
    they are those that replace it. A mode whose token the tokenizer lacks is left out.

    Raise NotMeasurable if there is no mode, or the model's context is too short.
    """
    way = "replace" if _begins_alike(scorer.text_model.tokenizer, documents) else "add"
    names = [name for name in UNCHEATABLE_STARTS if f"-{way}-" in name]
    figures = []
    reasons = set()
    for name in names:
        protocol = get_protocol(f"{name}-{chunk}")
        try:
            losses = pa.concat_tables(scorer.score(documents, protocol))
        except NotMeasurable as error:
            reasons.add(str(error))
            continue
        nats = pc.sum(losses["nll_nats"]).as_py()
        size = pc.sum(losses["num_bytes"]).as_py()
        figures.append(StartFigure(protocol.name, (nats or 0.0) / math.log(2) / max(size or 0, 1)))
    if not figures:
        raise NotMeasurable("; ".join(sorted(reasons)))
    return sorted(figures, key=lambda figure: figure.bits_per_byte)


def _begins_alike(tokenizer: Tokenizer, documents: Sequence[pa.RecordBatch]) -> bool:
    texts = [text for batch in documents for text in batch.column("text").to_pylist()]
    first = {int(tokens.ids[0]) for tokens in tokenizer.tokenize(texts) if len(tokens.ids)}
    return len(first) == 1 and len(texts) > 1
