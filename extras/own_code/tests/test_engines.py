"""A model's own code, in its confined process, looks for a network, credentials and files."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import models
from core.environment import confined_environment
from core.errors import ModelError
from core.settings import Settings
from models.backends import load_scorer
from models.options.scoring import OptionScorer, TextPrompt
from models.scoring.token_scorer import CausalLM
from tests.models.conftest import CopyOf, nats, record_batch
from tests.models.weights.test_own_code import own_model

SECRET = "a-planted-secret"

# What the code tries; ``found`` returns the names of what succeeds.
INTRUDER = """
import os, resource, socket, subprocess, tempfile
from pathlib import Path

AIMS = {aims}
PARENT = f"/proc/{{os.getppid()}}/environ"

def tcp(): socket.create_connection(("127.0.0.1", AIMS["port"]), 5).close(); return True
def udp(): return socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", AIMS["port"]))
def unix(): socket.socket(socket.AF_UNIX).connect(AIMS["socket"]); return True
def environment(): return AIMS["secret"] in " ".join(os.environ.values())
def parent(): return Path(PARENT).read_bytes()
def program(): return subprocess.run(["cat", PARENT], capture_output=True).stdout
def credentials(): return Path(AIMS["root"], "token").read_text()
def data_root(): return Path(AIMS["root"], "corpus").write_text("x")
def truncation(): os.truncate(AIMS["root"] + "/long", 1); return True
def emptying(): os.close(os.open(AIMS["root"] + "/long", os.O_RDONLY | os.O_TRUNC)); return True
def removal(): os.unlink(AIMS["root"] + "/old"); return True
def mode():
    before = os.stat(AIMS["root"]).st_mode
    os.chmod(AIMS["root"], 0o777)
    return os.stat(AIMS["root"]).st_mode != before
def listing(): return os.listdir(AIMS["root"])
def signals(): os.kill(os.getppid(), 0); return True
def limits(): return resource.prlimit(os.getppid(), resource.RLIMIT_CORE)
def cores(): os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0)); return True

TRIES = (tcp, udp, unix, environment, parent, program, credentials, data_root, listing, signals,
         limits, cores, truncation, emptying, removal, mode)

def found():
    names = []
    for each in TRIES:
        try:
            names += [each.__name__] if each() else []
        except OSError:
            pass
    return names
"""
OWN_MODEL = """
from transformers import LlamaConfig, LlamaForCausalLM

def report(when):
    with open(os.path.expanduser("~/report"), "a") as file:
        print(when, *found(), file=file)

report("import")

class OwnConfig(LlamaConfig):
    model_type = "own"

class OwnModel(LlamaForCausalLM):
    config_class = OwnConfig

    def forward(self, *arguments, **options):
        report("forward")
        return super().forward(*arguments, **options)
"""


@pytest.fixture
def aims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    root = tmp_path / "root"
    root.mkdir()
    for name in ("token", "long", "old"):
        (root / name).write_text(SECRET)
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.chdir(tmp_path)  # the path of a local socket has at most 107 bytes
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind("s")
        local.listen()
        port = server.getsockname()[1]
        path = str(tmp_path / "s")
        yield {"port": port, "socket": path, "root": str(root), "secret": SECRET}


def run(code: str, environment: dict[str, str], home: Path) -> list[str]:
    """Run code that prints names; return the names."""
    paths = {"PYTHONPATH": str(Path(models.__path__[0]).parent)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | paths, cwd=home, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.smoke
@pytest.mark.usefixtures("confinement")
def test_a_confined_process_reaches_nothing_that_a_free_one_reaches(
    aims: dict[str, Any], tmp_path: Path
) -> None:
    intruder = INTRUDER.format(aims=aims)
    tries = [each.strip() for each in intruder.split("TRIES = (")[1].split(")")[0].split(",")]
    assert run(intruder + "print(*found())", dict(os.environ), tmp_path) == tries  # noqa: TID251
    home = tmp_path / "home"
    home.mkdir()
    confine = (
        "import sys; from pathlib import Path; from extras.own_code.guard import confine\n"
        f"confine([Path(sys.prefix), Path(sys.base_prefix)], Path({str(home)!r}))\n"
    )
    written = f"Path({str(home / 'own')!r}).write_text('x'); print('end', *found())"
    assert run(confine + intruder + written, confined_environment(home), home) == ["end"]
    assert (home / "own").read_text() == "x"


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.usefixtures("confinement")
def test_own_code_scores_as_the_plain_class_and_finds_nothing(
    aims: dict[str, Any], llama_folder: str, copy_of: CopyOf, settings: Settings,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    entry = own_model(copy_of(llama_folder), INTRUDER.format(aims=aims) + OWN_MODEL)
    own, plain = load_scorer(entry, settings), CausalLM.load(llama_folder, None, settings)
    assert isinstance(own, CausalLM)
    batch = record_batch(2, text=["The tide leaves a mark on the sand. " * 4, "x"])
    assert nats(own, batch) == pytest.approx(nats(plain, batch), rel=1e-6)
    prompts = [TextPrompt("The tide", (" leaves", " washes it away")), TextPrompt("def", (" add",))]
    theirs, ours = (
        [
            each.log_probability
            for scores in OptionScorer("m", m.text_model, m.engine, m.context, 64).score(prompts)
            for each in scores
        ]
        for m in (plain, own)
    )
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert own.facts.versions["guard"].startswith("code of the model; landlock")
    [home] = tmp_path.glob("tidemark-model-*")
    reports = (home / "report").read_text().splitlines()
    assert set(reports) == {"import", "forward"}
    own.engine._process.kill()  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match=r"confined process of the model ended \(-9\)"):
        nats(own, batch)
    del own
    assert not home.exists()
