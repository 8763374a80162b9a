"""The kind ``gguf``."""

from __future__ import annotations

from models.kinds import LOCAL_ANSWERER, Backend

BACKENDS = (
    Backend(
        kind="gguf",
        on_device=True,
        suffix=".gguf",
        cannot={"write": "a GGUF file writes no text here; name a folder of the same model"},
        identify="extras.gguf.engine:identify_gguf",
        load="extras.gguf.engine:load_gguf",
        load_answerer=LOCAL_ANSWERER,
    ),
)
