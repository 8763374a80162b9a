"""Hugging Face causal language models, from a folder or the hub."""

from __future__ import annotations

from models.backends import Backend
from models.generation.local import generation_identity, load_generator
from models.options.answering import load_answerer
from models.scoring.token_scorer import identify_causal_lm, load_causal_lm

BACKEND = Backend(
    kind="causal_lm",
    on_device=True,
    from_hub=True,
    is_listed=True,
    codes=True,
    fields=("trust",),
    identify=identify_causal_lm,
    load=load_causal_lm,
    load_answerer=load_answerer,
    load_generator=load_generator,
    identify_texts=generation_identity,
)
