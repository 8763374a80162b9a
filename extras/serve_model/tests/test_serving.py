"""A server of vLLM is started and stopped; a script stands for vLLM."""

import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from typer.testing import CliRunner

from cli.main import app
from core.errors import ModelLoadError, UsageError
from core.settings import Settings
from extras.serve_model.serving import plan_command, serving
from models.catalogue import ModelEntry, add_model
from tests.loopback import free_port, wait_for
from tests.tiers import needs_extra

pytestmark = needs_extra("remote_scoring")  # it has the kind of such entries

SCRIPT = """#!{python}
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

if "--fail" in sys.argv:
    sys.exit("no kernel image is available")

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = " ".join(sys.argv[1:]).encode()
        self.send_response(200 if self.path in ("/health", "/options") else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

port = int(sys.argv[sys.argv.index("--port") + 1])
print("serving", flush=True)
HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The command sets handlers of signals."""
    before = {
        each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.fixture
def vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text(SCRIPT.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))


@pytest.fixture
def own(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"))


def entry_at(port: int, **fields: Any) -> ModelEntry:
    known = {"name": "big", "kind": "remote", "tokenizer": "org/big"}
    return ModelEntry(**({**known, "location": f"http://127.0.0.1:{port}"} | fields))


@pytest.mark.usefixtures("vllm")
def test_a_model_is_served_and_stopped_again(own: Settings) -> None:
    entry = entry_at(free_port(), revision="abc")
    for _ in range(2):
        with serving(entry, own, ["--dtype", "float32"]) as log:
            said = requests.get(f"{entry.location}/options", timeout=60).text.split()
            assert log.read_text().startswith("serving")
        with pytest.raises(requests.ConnectionError):
            requests.get(f"{entry.location}/options", timeout=60)
    assert said[:4] == ["serve", "org/big", "--revision", "abc"]
    assert said[said.index("--served-model-name") + 1] == "big"
    assert said[said.index("--max-model-len") + 1] == "2050"
    assert said[said.index("--host") + 1] == "127.0.0.1"
    assert "--no-enable-prefix-caching" in said and said[-2:] == ["--dtype", "float32"]


@pytest.mark.smoke
@pytest.mark.usefixtures("vllm")
def test_lengths_are_those_of_the_model_or_as_given() -> None:
    short = plan_command(entry_at(1, context=1024), [])
    assert short[short.index("--max-model-len") + 1] == "1024"
    assert plan_command(entry_at(1), ["--max-model-len", "9"]).count("--max-model-len") == 1


@pytest.mark.usefixtures("vllm")
def test_a_server_that_ends_is_told_with_its_log(own: Settings) -> None:
    served = serving(entry_at(free_port()), own, ["--fail"])
    with pytest.raises(ModelLoadError, match="big: vLLM ended.*no kernel image is available"):
        served.__enter__()


@pytest.mark.usefixtures("vllm")
def test_a_port_that_is_taken_is_told(own: Settings) -> None:
    entry = entry_at(free_port())
    with serving(entry, own), pytest.raises(UsageError, match="another program has the port"):
        serving(entry, own).__enter__()


@pytest.mark.usefixtures("vllm")
@pytest.mark.parametrize("says", [b"", b"\x00\xff no HTTP\r\n\r\n", b"HTTP/1.1 500 Oops\r\n\r\n"])
def test_a_port_of_a_program_that_speaks_no_http_is_told(own: Settings, says: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepted = list[socket.socket]()

        def speak() -> None:
            connection, _ = listener.accept()
            connection.sendall(says)
            accepted.append(connection)  # it stays open

        speaker = threading.Thread(target=speak)
        speaker.start()
        with pytest.raises(UsageError, match="another program has the port"):
            serving(entry_at(listener.getsockname()[1]), own).__enter__()
        speaker.join()
    assert not (own.scratch / "serve-model").exists(), "vLLM was not started"
    for connection in accepted:
        connection.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"location": "http://10.0.0.1:8000"},
        {"location": "http://127.0.0.1"},
        {"kind": "causal_lm", "location": "org/big", "tokenizer": None},
    ],
)
@pytest.mark.usefixtures("vllm")
def test_models_of_other_machines_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="is not served by this machine"):
        plan_command(entry_at(1, **fields), [])


def test_without_vllm_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="no program vllm on the PATH; install vLLM in an"):
        plan_command(entry_at(1), [])


@pytest.mark.usefixtures("vllm")
def test_models_are_served_one_after_another(own: Settings, tmp_path: Path) -> None:
    port = free_port()
    for name in ("one", "two"):
        add_model(entry_at(port, name=name), own)
    code = (
        "import sys, urllib.request as r; "
        f"said = r.urlopen('http://127.0.0.1:{port}/options').read().decode(); "
        f"open({str(tmp_path / 'said')!r}, 'a').write(sys.argv[1] + ' ' + said + chr(10)); "
        "sys.exit(sys.argv[1] == 'one')"
    )
    run = f'{sys.executable} -c "{code}" {{}}'
    done = CliRunner().invoke(app, ["--home", own.home, "serve-model", "one", "two", "--run", run])
    assert done.exit_code == 1 and "failed: one" in done.output  # and the second was served
    lines = (tmp_path / "said").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["one", "two"]
    assert ["--served-model-name two" in line for line in lines] == [False, True]
    done = CliRunner().invoke(app, ["--home", own.home, "serve-model", "one", "two"])
    assert isinstance(done.exception, UsageError)


@pytest.mark.usefixtures("vllm")
def test_a_proxy_of_the_environment_is_not_asked(
    own: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = entry_at(free_port(), name="proxy")
    with serving(proxy, own):
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", proxy.location)
        with serving(entry_at(free_port()), own) as log:
            assert log.read_text().startswith("serving")


@pytest.mark.usefixtures("vllm")
def test_what_cannot_be_run_is_told_before_a_server_starts(own: Settings) -> None:
    add_model(entry_at(free_port(), name="one"), own)
    command = ["--home", own.home, "serve-model", "one"]
    for given, message in (
        (["--run", "no-such-program {}"], "there is no program 'no-such-program'"),
        (["--run", ""], "there is no program ''"),
        (["--run", "echo 'a"], "No closing quotation"),
        (["--options", "'a"], "--options .*No closing quotation"),
    ):
        done = CliRunner().invoke(app, [*command, *given])
        assert isinstance(done.exception, UsageError), given
        assert re.search(message, str(done.exception))
    assert not (own.scratch / "serve-model").exists()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.usefixtures("vllm")
def test_a_run_that_is_ended_stops_the_server_and_is_no_success(
    own: Settings, tmp_path: Path, end: signal.Signals
) -> None:
    port = free_port()
    for name in ("one", "two"):
        add_model(entry_at(port, name=name), own)
    begun = tmp_path / "begun"
    wait = f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(600)"
    process = subprocess.Popen(
        [sys.executable, "-c", "from cli.main import main; main()", "--home", own.home,
         "serve-model", "one", "two", "--run", f'{sys.executable} -c "{wait}"'],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(begun.exists)
    process.send_signal(end)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "not done: one, two" in told
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.1:{port}/options", timeout=60)
