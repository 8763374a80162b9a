"""A server of vLLM on this machine, started for one model and stopped again.

vLLM is no dependency: its program ``vllm`` is looked for on the PATH, and may belong to another
environment. The model's entry states the address, on loopback, and the weights (``tokenizer``).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import requests

from core.environment import environment_with
from core.errors import ModelLoadError, UsageError
from core.settings import Settings
from models.catalogue import ModelEntry
from models.servers.http import open_session

_LOOPBACK = ("127.0.0.1", "localhost")
_STOP_S = 60.0  # from SIGTERM to SIGKILL
_ASK_S = 5.0  # timeout of one question whether the server is ready
_TOLD = 2000  # characters of the log in a message
MOST_TOKENS = 2050  # windows of 2,048 tokens, a last target and a generated token


def plan_command(entry: ModelEntry, options: Sequence[str]) -> list[str]:
    """Return the command that serves a model, with further options of ``vllm serve``.

    Raises:
        UsageError: the entry is not of a remote model on loopback, or there is no ``vllm``.
    """
    parts = urlsplit(entry.location)
    if entry.kind != "remote" or parts.hostname not in _LOOPBACK or parts.port is None:
        raise UsageError(
            f"{entry.name} ({entry.kind}, {entry.location}) is not served by this machine; add it "
            "with `tidemark models add NAME http://127.0.0.1:PORT --tokenizer ORG/MODEL`, where "
            "the tokenizer is the hub id or the folder of the weights"
        )
    program = shutil.which("vllm")
    if program is None:
        raise UsageError(
            "there is no program vllm on the PATH; install vLLM in an environment of its own "
            "(python -m venv, pip install vllm) and put its bin folder on the PATH"
        )
    weights = entry.tokenizer or ""
    folder = Path(weights).expanduser()
    length = min(MOST_TOKENS, entry.context or MOST_TOKENS)
    pins = () if folder.is_dir() or entry.revision is None else ("--revision", entry.revision)
    return [
        program, "serve", str(folder) if folder.is_dir() else weights, *pins,
        "--host", "127.0.0.1", "--port", str(parts.port),
        "--served-model-name", entry.served_name or entry.name,
        "--no-enable-prefix-caching",
        *(() if "--max-model-len" in options else ("--max-model-len", str(length))),
        *options,
    ]  # fmt: skip


@contextmanager
def serving(
    entry: ModelEntry, settings: Settings, options: Sequence[str] = (), patience_s: float = 1800.0
) -> Iterator[Path]:
    """Serve a model within the ``with`` block; yield the path of the server's log.

    Raises:
        UsageError: as ``plan_command``, or another program has the port.
        ModelLoadError: the server ends, or does not answer within ``patience_s`` seconds; the
            message has the end of its log.
    """
    command = plan_command(entry, options)
    if _is_taken(entry):
        raise UsageError(
            f"{entry.location}: another program has the port already; stop it, or give "
            f"{entry.name} another port"
        )
    log = settings.scratch / "serve-model" / f"{entry.name.replace('/', '-')}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    key = settings.remote_api_key
    given = {"VLLM_API_KEY": key.get_secret_value()} if key else {}
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            env=environment_with(given), start_new_session=True,
        )  # fmt: skip
    try:
        _wait(process, entry, log, patience_s)
        yield log
    finally:
        _stop(process)


def _is_taken(entry: ModelEntry) -> bool:
    """Return True if a program accepts connections at the address, whatever it says then."""
    parts = urlsplit(entry.location)
    try:
        with socket.create_connection((str(parts.hostname), parts.port or 0), timeout=_ASK_S):
            return True
    except TimeoutError:
        return True  # it listens, and accepts nobody
    except OSError:
        return False


def _wait(
    process: subprocess.Popen[bytes], entry: ModelEntry, log: Path, patience_s: float
) -> None:
    """Wait until the server is healthy; raise an error if it ends, or is late."""
    deadline = time.monotonic() + patience_s
    while _health(entry) != requests.codes.ok:
        is_late = time.monotonic() > deadline
        if process.poll() is not None or is_late:
            how = "does not answer" if is_late else f"ended ({process.returncode})"
            said = log.read_text(errors="replace")[-_TOLD:].strip()
            raise ModelLoadError(f"{entry.name}: vLLM {how}; {log} ends with: {said or 'nothing'}")
        time.sleep(0.2)


def _health(entry: ModelEntry) -> int | None:
    """Return the status of the server's path for health, or None if nothing answers."""
    base = entry.location.rstrip("/").removesuffix("/v1")
    try:
        with open_session(base, None, num_at_once=1) as session:
            return session.get(f"{base}/health", timeout=_ASK_S).status_code
    except requests.RequestException:
        return None


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the server to end; kill it and its processes if it does not."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
