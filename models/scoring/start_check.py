"""A test at loading: does the model need its start token?

Some models were trained with a start token before every text, and predict badly without it. Of
Gemma 3, tokens of plain English cost several times as much. Protocols that put no start token
before a window then measure this, and not the text.
"""

from __future__ import annotations

import numpy as np

from models.scoring.scorer import Engine
from models.scoring.text_model import TextModel

_TEXT = (
    "The capital of France is Paris. The capital of Germany is Berlin. In the morning the sun "
    "rises in the east, and in the evening it sets in the west."
)
# Without a start token, first tokens have less context, which alone costs some tenths of a nat.
_LEAST_DIFFERENCE = 1.0  # nats a token
_LEAST_RATIO = 1.5


def find_need_of_start(engine: Engine, text_model: TextModel, context: int | None) -> str | None:
    """Return what a token costs with the start token and without it, or None without a need."""
    # The same tokens of a fixed text are compared: all but the first, which has no context without
    # the start token. A model of a short ``context`` reads the first of them.
    start = text_model.start_token
    (tokens,) = text_model.tokenizer.tokenize([_TEXT])
    ids = tokens.ids[:context]
    if start is None or len(ids) < 2:
        return None
    (nats_with_start,) = engine.losses([np.concatenate(([start], ids[:-1]))], [ids])
    (nats_without,) = engine.losses([ids[:-1]], [ids[1:]])
    with_start = float(np.mean(nats_with_start[1:]))
    without = float(np.mean(nats_without))
    if not without >= max(with_start + _LEAST_DIFFERENCE, with_start * _LEAST_RATIO):
        return None
    return (
        f"needed: {with_start:.1f} nats a token after {text_model.start_text}, {without:.1f} bare"
    )
