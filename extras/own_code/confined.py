"""The confined process of a model that brings code; ``extras.own_code.engines`` starts it.

    python -m extras.own_code.confined <number of the pipe to read> <number of the pipe to write>

The process confines itself before it reads any file of the model. It then answers requests until
the pipe is closed. Libraries with threads are imported after that, because Landlock does not hold
for threads that exist already.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Found now, because the folder of the packages cannot be listed later.
import core.errors  # noqa: F401
import models  # noqa: F401
from core.json import JsonObject
from extras.own_code.guard import confine

if TYPE_CHECKING:
    from models.generation.cached_rows import RowModel, Rows
    from models.scoring.forward import Forward

_MESSAGE_CHARS = 500


def serve_model(inbox: Connection, outbox: Connection) -> None:
    """Confine this process, load the model of the first request, and answer all others."""
    spec = json.loads(inbox.recv_bytes())
    inbox.recv_bytes()
    if not _answer(outbox, lambda: ({"guard": _confine(spec)}, b"")):
        return
    served = _Served(spec)
    while True:
        try:
            request = json.loads(inbox.recv_bytes())
            data = inbox.recv_bytes()
        except EOFError:
            return
        _answer(outbox, partial(served.reply, request, data))


def _confine(spec: JsonObject) -> str:
    own = [*spec["folders"], *spec["linked"]]
    return confine(map(Path, spec["readable"]), Path(spec["writable"]), map(Path, own))


def _answer(outbox: Connection, reply: Callable[[], tuple[JsonObject, bytes]]) -> bool:
    """Send a reply, or the error that stands in its place; return False for an error."""
    kind = ""
    try:
        found, data = reply()
    except Exception as failure:  # noqa: BLE001 - foreign code may raise anything
        kind = type(failure).__name__
        is_ours = type(failure).__module__ in ("core.errors", "models.scoring.scorer")
        message = f"{'' if is_ours else f'{kind}: '}{failure}"[:_MESSAGE_CHARS]
        found = {"error": kind, "message": message}
        data = b""
    outbox.send_bytes(json.dumps(found).encode())
    outbox.send_bytes(data)
    return not kind


class _Served:
    """The model, and the texts that it continues."""

    _forward: Forward
    _model: RowModel | None = None
    _rows: Rows

    def __init__(self, spec: JsonObject) -> None:
        self._spec = spec

    def reply(self, request: JsonObject, data: bytes) -> tuple[JsonObject, bytes]:
        """Return the reply to a request, as JSON and array; ``data`` has its token ids."""
        import numpy as np

        from models.scoring.forward import Forward, or_device_full

        ids = np.frombuffer(data, dtype=np.int64).copy()
        ends = [0, *accumulate(request["lengths"])]
        parts = [ids[begin:end] for begin, end in pairwise(ends)]
        match request["do"]:
            case "load":
                self._forward = engine = Forward(_load_model(self._spec))
                sizes = {"vocabulary": engine.vocabulary, "most": engine.max_batch_tokens}
                return sizes, b""
            case "losses":
                rows = request["rows"]
                among = parts[-1] if len(parts) > 2 * rows else None
                nats = self._forward.losses(parts[:rows], parts[rows : 2 * rows], among)
                return {}, np.concatenate(nats).astype(np.float64).tobytes()
            case "may_batch":
                return {"may_batch": self._row_model.may_batch(request["longest"])}, b""
            case "start":
                vars(self).pop("_rows", None)  # frees the memory of the texts before
                self._rows = or_device_full(lambda: self._row_model.start(parts, request["room"]))
            case "read":
                or_device_full(lambda: self._rows.read(self._row_model.send(ids)))
            case "keep":
                self._rows.keep(request["places"])
                return {}, b""
        return {}, self._rows.logits.float().cpu().contiguous().numpy().tobytes()

    @property
    def _row_model(self) -> RowModel:
        from models.generation.cached_rows import RowModel

        self._model = self._model or RowModel(self._forward.model)
        return self._model


def _load_model(spec: JsonObject) -> Any:
    """Load the model; this is where its own code is imported and run."""
    import torch
    from transformers import AutoConfig

    from models.weights.checkpoint import CheckpointFiles
    from models.weights.configuration import load_config
    from models.weights.loading import read_model

    folder, *adapters = map(Path, spec["folders"])
    if spec["has_own_code"]:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=True, local_files_only=True)
    else:
        config = load_config(folder, spec["location"], is_trusted=True)
    files = CheckpointFiles(
        location=spec["location"],
        folder=folder,
        revision="",  # checked before, like the tokenizer
        config=config,
        tokenizer=None,  # type: ignore[arg-type]
        context=None,
        device=torch.device(spec["device"]),
        dtype=getattr(torch, spec["dtype"]),
        attention=spec["attention"],
        is_trusted=True,
        has_own_code=spec["has_own_code"],
        adapter=adapters[0] if adapters else None,
    )
    return read_model(files)


if __name__ == "__main__":
    serve_model(Connection(int(sys.argv[1])), Connection(int(sys.argv[2])))
