"""Reference models: causal language models that tidemark trained up to a known month."""

from __future__ import annotations

from models.backends import Backend
from models.generation.local import generation_identity, load_generator
from models.options.answering import load_answerer
from models.scoring.token_scorer import identify_causal_lm, load_causal_lm

BACKEND = Backend(
    kind="reference",
    on_device=True,
    from_hub=True,
    is_listed=True,
    codes=True,
    identify=identify_causal_lm,
    load=load_causal_lm,
    load_answerer=load_answerer,
    load_generator=load_generator,
    identify_texts=generation_identity,
)
