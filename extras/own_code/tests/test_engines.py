"""A model's own code, in its confined process, looks for a network, credentials and files."""

import ctypes
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
import ctypes, fcntl, os, resource, socket, subprocess, tempfile
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
def daemon():
    ours, theirs = os.pipe()
    if not os.fork():
        os.setsid()
        if not os.fork():
            os.write(theirs, b"x")
        os._exit(0)
    return os.read(ours, 1)
def replacement():
    if not os.fork():
        os.execv("/bin/true", ["true"])
    return not os.wait()[1]
def owner():
    ours, theirs = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETOWN, AIMS["victim"])
    fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
    return os.write(theirs, b"x")
def log():
    pair = socket.socketpair(type=socket.SOCK_DGRAM)
    return pair[0].sendto(b"x", AIMS["log"])
def watching():
    library = ctypes.CDLL(None, use_errno=True)
    return library.inotify_add_watch(library.inotify_init(), AIMS["root"].encode(), 0xFFF) > 0
def link(): return Path(AIMS["link"]).read_text()
def hard_link(): os.link(AIMS["root"] + "/long", "hard"); return Path("hard").write_text("x")
def memory(): return open(f"/proc/{{os.getppid()}}/mem", "rb")
def shared():
    library = ctypes.CDLL(None, use_errno=True)
    return library.shmctl(AIMS["segment"], 2, ctypes.create_string_buffer(256)) == 0
def signal_of_death(): return ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) == 0

TRIES = (tcp, udp, unix, environment, parent, program, credentials, data_root, listing, signals,
         limits, cores, truncation, emptying, removal, mode, daemon, replacement, owner, log,
         watching, link, hard_link, memory, shared, signal_of_death)

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
    (tmp_path / "link").symlink_to(root / "token")
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.chdir(tmp_path)  # the path of a local socket has at most 107 bytes
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as local,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log,
        subprocess.Popen(["sleep", "600"]) as victim,
        segment() as shared,
    ):
        local.bind("s")
        local.listen()
        log.bind("log")
        yield {
            "port": server.getsockname()[1], "socket": str(tmp_path / "s"),
            "log": str(tmp_path / "log"), "root": str(root), "secret": SECRET,
            "link": str(tmp_path / "link"), "victim": victim.pid, "segment": shared,
        }  # fmt: skip
        victim.kill()


@contextmanager
def segment() -> Iterator[int]:
    """Create shared memory of System V; yield its id."""
    library = ctypes.CDLL(None, use_errno=True)
    number = library.shmget(0, 4096, 0o600)
    yield number
    assert library.shmctl(number, 0, None) == 0  # IPC_RMID


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
    own = load_scorer(entry, settings)
    plain = CausalLM.load(llama_folder, None, settings)
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
