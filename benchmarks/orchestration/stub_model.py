"""Stub of a model server that responds after 0.4 s with made-up log-probabilities.

    python -m benchmarks.orchestration.stub_model NAME …     print the port, serve until killed

The stub implements the requests of ``extras/remote_scoring/vllm.py``. A token costs one to three
nats, by a checksum of the text up to it. Prompts of the lengths with which a scorer tests a server
get an immediate response. ``/stats`` returns the number and the maximum concurrency of delayed
responses.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import zlib
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate

from core.json import JsonObject

SECONDS = 0.4  # delay of a response, in seconds
DELAYED = range(205, 2000)  # other lengths of prompts, in tokens, get an immediate response


class Stats:
    """Counts of the delayed requests."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.busy = self.most_busy = self.answers = 0

    def __enter__(self) -> None:
        with self.lock:
            self.busy += 1
            self.most_busy = max(self.most_busy, self.busy)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.busy -= 1
            self.answers += 1


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # avoids a delay of 40 ms before the body
    names: list[str]
    stats = Stats()

    def do_GET(self) -> None:
        if self.path == "/stats":
            stats = self.stats
            self._answer({"answers": stats.answers, "most_busy": stats.most_busy})
        else:
            self._answer({"data": [{"id": name, "max_model_len": 4096} for name in self.names]})

    def do_POST(self) -> None:
        """Answer a prompt; those of some lengths after a fixed time."""
        due = time.monotonic() + SECONDS
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["prompt"]
        if self.path != "/v1/completions":
            self._answer({}, 404)
        elif len(prompt) not in DELAYED:
            self._answer(_completion(prompt))
        else:
            with self.stats:
                answer = _completion(prompt)
                time.sleep(max(0.0, due - time.monotonic()))
            self._answer(answer)

    def _answer(self, answer: JsonObject, status: int = 200) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def _completion(prompt: list[int]) -> JsonObject:
    pairs = zip(prompt[1:], losses_of(prompt), strict=True)
    entries = [None, *({str(token): {"logprob": -nats}} for token, nats in pairs)]
    return {"choices": [{"prompt_logprobs": entries}]}


def losses_of(prompt: Sequence[int]) -> list[float]:
    """Return the made-up loss in nats of each token of a prompt except the first."""
    sums = list(accumulate(prompt, lambda sum_, token: zlib.crc32(b"%d " % token, sum_), initial=0))
    return [1 + 2 * (each / 2**32) for each in sums[2:]]


if __name__ == "__main__":
    _Handler.names = sys.argv[1:]
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        print(server.server_address[1], flush=True)
        server.serve_forever()
