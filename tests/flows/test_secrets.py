"""Secrets of the environment are in nothing that a command writes, prints or starts."""

import base64
import contextlib
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import duckdb
import psutil
import pyarrow.parquet as pq
import pytest
import zstandard

from core.storage.store import Store
from simulator.server import Web
from simulator.sites import github_api, metaculus, openai_api
from tests.commands import TIDEMARK
from tests.crawlers.questions.scene import permit
from tests.flows.apis import write_entry

SITES = {
    "TIDEMARK_TOKENS__GITHUB_API": github_api.TOKEN,
    "TIDEMARK_TOKENS__METACULUS": metaculus.TOKEN,
    "TIDEMARK_API_KEYS__SIM": openai_api.KEY,
}
OTHERS = {
    "TIDEMARK_NOTIFY_URL": "http://127.0.0.1:9/hooks/T0Planted/s3cr3t-of-the-webhook",
    "TIDEMARK_REMOTE_API_KEY": "planted-key-of-a-remote-model",
    "AWS_ACCESS_KEY_ID": "AKIAPLANTEDPLANTED00",
    "AWS_SECRET_ACCESS_KEY": "planted/secret+of=the+object/store",
    "HF_TOKEN": "hf_PlantedTokenOfTheHubOfModels",
}
WRONG = {name: value[::-1] for name, value in SITES.items()}
MONTH = "2024-03"


class Watched:
    """Runs commands, and collects what they print and the arguments of all processes."""

    def __init__(self, home: Path, web: Web) -> None:
        sites = {f"TIDEMARK_SITES__{key.upper()}": url for key, url in web.urls.items()}
        self._environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "TIDEMARK_HOME": str(home),
            "TIDEMARK_REQUEST_INTERVAL_S": "0", "OPENBLAS_NUM_THREADS": "1",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1",
            "PREFECT_LOGGING_LEVEL": "DEBUG", "TIDEMARK_CONTACT": "you@example.org", **sites,
        }  # fmt: skip
        self._folder = home.parent
        self.seen = ""
        self._arguments: set[str] = set()

    def run(self, command: str, secrets: Mapping[str, str]) -> int:
        environment = {**self._environment, **OTHERS, **secrets}
        started = subprocess.Popen(
            [TIDEMARK, *command.split()], env=environment, cwd=self._folder,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        end = threading.Event()
        watcher = threading.Thread(
            target=self._list_processes, args=(psutil.Process(started.pid), end)
        )
        watcher.start()
        output = started.communicate()[0]
        end.set()
        watcher.join()
        self.seen += f"$ {command}\n{output}" + "\n".join(self._arguments)
        return started.returncode

    def _list_processes(self, process: psutil.Process, end: threading.Event) -> None:
        while not end.wait(0.05):
            with contextlib.suppress(psutil.Error):
                for each in [process, *process.children(recursive=True)]:
                    self._arguments.add(" ".join(each.cmdline()))


def texts_of(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the decompressed content of each file below a folder."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = zstandard.ZstdDecompressor().decompress(data)
        yield str(path), data.decode("latin-1")
        if path.suffix == ".parquet":
            yield str(path), str(pq.read_table(path).to_pylist())
        if path.suffix == ".duckdb":
            with duckdb.connect(path, read_only=True) as connection:
                for name in connection.sql("select schema || '.' || name from (show all tables)"
                                           ).fetchall():  # fmt: skip
                    yield f"{path} {name[0]}", str(connection.sql(f"from {name[0]}").fetchall())


def forms(secret: str) -> set[str]:
    raw = secret.encode()
    return {
        secret, quote(secret, safe=""), base64.b64encode(raw).decode().rstrip("=")[:-1], raw.hex(),
    }  # fmt: skip


def expect_hidden(watched: Watched, folder: Path) -> None:
    texts = [("what is printed, and arguments", watched.seen), *texts_of(folder)]
    assert len(texts) > 5
    for name, secret in {**SITES, **OTHERS, **{f"wrong {k}": v for k, v in WRONG.items()}}.items():
        shown = {where for form in forms(secret) for where, text in texts if form in text}
        assert not shown, f"{name} is in {sorted(shown)[:3]}"


@pytest.fixture
def watched(home: Path, sites: Web) -> Watched:
    write_entry(home, sites, "sim-forecaster")
    permit(Store(str(home)), "metaculus")
    return Watched(home, sites)


def test_errors_and_recordings_show_no_secret(
    watched: Watched, sites: Web, home: Path, tmp_path: Path
) -> None:
    recording = f"record metaculus {MONTH} --out {tmp_path}/out"
    for number, tokens in enumerate((SITES, WRONG)):  # the second crawl fails and is recorded
        assert watched.run(f"{recording}{number}", tokens) == 0, watched.seen
        assert list((tmp_path / f"out{number}").glob("*.json"))
    expect_hidden(watched, tmp_path)
