"""The kind ``rwkv``."""

from __future__ import annotations

from models.kinds import LOCAL_ANSWERER, Backend

BACKENDS = (
    Backend(
        kind="rwkv",
        on_device=True,
        suffix=".pth",
        identify="extras.rwkv.engine:identify_rwkv",
        load="extras.rwkv.engine:load_rwkv",
        load_answerer=LOCAL_ANSWERER,
        load_generator="extras.rwkv.engine:load_rwkv_generator",
        identify_texts="extras.rwkv.engine:identify_rwkv_texts",
    ),
)
