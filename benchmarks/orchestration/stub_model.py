"""Stub of a model server that responds after 0.4 s with equal log-probabilities.

    python -m benchmarks.orchestration.stub_model NAME …     print the port, serve until killed

The stub implements the requests of ``models/remote.py``. Short prompts, with which a scorer tests a
server, get an immediate response. ``/stats`` returns the number and the maximum concurrency of
delayed responses.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from core.json import JsonObject

SECONDS = 0.4  # delay of a response, in seconds
MIN_TOKENS = 64  # shorter prompts get an immediate response


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
        due = time.monotonic() + SECONDS
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["prompt"]
        if self.path != "/v1/completions":
            self._answer({}, 404)
        elif len(prompt) < MIN_TOKENS:
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
    entries = [None, *({str(token): {"logprob": -2.0}} for token in prompt[1:])]
    return {"choices": [{"prompt_logprobs": entries}]}


if __name__ == "__main__":
    _Handler.names = sys.argv[1:]
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        print(server.server_address[1], flush=True)
        server.serve_forever()
