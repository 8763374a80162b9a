"""Secrets of the environment are in nothing that a command writes, prints or starts."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from core.storage.store import Store
from simulator.server import Web
from simulator.sites import github_api, metaculus, openai_api
from tests.commands import TIDEMARK
from tests.crawlers.questions.scene import permit
from tests.flows.support.apis import write_entry
from tests.flows.support.planted import places_of, texts_of, watched_processes

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

    def run(self, command: str, secrets: Mapping[str, str]) -> int:
        environment = {**self._environment, **OTHERS, **secrets}
        with watched_processes() as arguments:
            done = subprocess.run(
                [TIDEMARK, *command.split()], env=environment, cwd=self._folder,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )  # fmt: skip
        self.seen += f"$ {command}\n{done.stdout}" + "\n".join(arguments)
        return done.returncode


def expect_hidden(watched: Watched, folder: Path) -> None:
    texts = [("what is printed, and arguments", watched.seen), *texts_of(folder)]
    assert len(texts) > 5
    for name, secret in {**SITES, **OTHERS, **{f"wrong {k}": v for k, v in WRONG.items()}}.items():
        assert not places_of(secret, texts), name


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
