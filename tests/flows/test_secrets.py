"""Secrets of the environment are in nothing that a command writes, prints or starts."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from simulator.server import Web
from simulator.sites import github_api, openai_api
from tests.commands import TIDEMARK
from tests.flows.support.apis import write_entry
from tests.flows.support.planted import places_of, texts_of, watched_processes
from tests.tiers import needs_extra

SITES = {
    "TIDEMARK_TOKENS__GITHUB_API": github_api.TOKEN,
    "TIDEMARK_API_KEYS__SIM": openai_api.KEY,
}
OTHERS = {
    "TIDEMARK_NOTIFY_URL": "http://127.0.0.1:9/hooks/T0Planted/s3cr3t-of-the-webhook",
    "TIDEMARK_REMOTE_API_KEY": "planted-key-of-a-remote-model",
    "AWS_ACCESS_KEY_ID": "AKIAPLANTEDPLANTED00",
    "AWS_SECRET_ACCESS_KEY": "planted/secret+of=the+object/store",
    "HF_TOKEN": "hf_PlantedTokenOfTheHubOfModels",
}
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


def expect_hidden(watched: Watched, folder: Path, secrets: Mapping[str, str]) -> None:
    texts = [("what is printed, and arguments", watched.seen), *texts_of(folder)]
    assert len(texts) > 5
    for name, secret in secrets.items():
        assert not places_of(secret, texts), name


@pytest.fixture
def watched(home: Path, sites: Web) -> Watched:
    write_entry(home, sites, "sim-forecaster")
    return Watched(home, sites)


def check_recordings(
    watched: Watched, source: str, tokens: Mapping[str, str], folder: Path
) -> None:
    """Record a source with its tokens and with wrong ones, and search for all of them."""
    given = {**SITES, **tokens}
    wrong = {name: value[::-1] for name, value in given.items()}
    for number, secrets in enumerate((given, wrong)):  # the second crawl fails and is recorded
        command = f"sources record {source} {MONTH} --out {folder}/out{number}"
        assert watched.run(command, secrets) == 0, watched.seen
        assert list((folder / f"out{number}").glob("*.json"))
    hidden = {**given, **OTHERS, **{f"wrong {name}": value for name, value in wrong.items()}}
    expect_hidden(watched, folder, hidden)


@needs_extra("recording")
@needs_extra("github")
def test_errors_and_recordings_show_no_secret(watched: Watched, tmp_path: Path) -> None:
    check_recordings(watched, "github_new", {}, tmp_path)
