"""The kind ``remote``."""

from __future__ import annotations

from models.kinds import LOCAL_ANSWERER, Backend

REMOTE = Backend(
    kind="remote",
    is_server=True,
    answers_together=8,
    fields=("served_name", "tokenizer", "dialect"),
    needs=("tokenizer",),
    identify="extras.remote_scoring.engine:identify_remote",
    load="extras.remote_scoring.engine:load_remote",
    load_answerer=LOCAL_ANSWERER,
    load_generator="extras.remote_scoring.engine:load_remote_generator",
    identify_texts="extras.remote_scoring.engine:identify_remote_texts",
)

BACKENDS = (REMOTE,)
