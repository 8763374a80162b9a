"""The command line, run in this process or as its own process."""

import datetime as dt
import functools
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TextIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import typer.main
from prefect.logging.handlers import PrefectConsoleHandler
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from cli.main import main
from core.month import Month
from core.schemas.tables import LOSSES
from core.settings import Settings
from simulator.server import Web, serve
from simulator.world import World
from tests.losses import loss_row
from warehouse.database.schema import list_tables, qualify
from warehouse.database.writer import connected

TIDEMARK = Path(sys.executable).parent / "tidemark"
_ONE_AFTER_THE_OTHER = """
import json, sys
from cli.main import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["tidemark", *arguments]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""
FIRST, LAST = Month("2024-01"), Month("2024-03")
# A process makes its commands once; many tests run in this one.
_get_command = functools.cache(typer.main.get_command)


@dataclass(frozen=True)
class Ran:
    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    def expect(self, code: int, *says: str, out: str | None = None) -> Self:
        assert self.code == code, self.err
        for part in says:
            assert part in self.err, self.err
        assert out in (None, self.out), self.out
        return self


def in_one_process(commands: Sequence[Sequence[str]]) -> list[str]:
    """Return the command line of a process that runs commands of tidemark, until one fails."""
    return [sys.executable, "-c", _ONE_AFTER_THE_OTHER, json.dumps(commands)]


def import_notes(tidemark: Callable[..., Any], folder: Path, month: str, *texts: str) -> None:
    """Import texts, each repeated 60 times, as a new version of a month of source ``notes``."""
    file = folder / "texts.jsonl"
    lines = [json.dumps({"id": f"t{i}", "text": f"{text} " * 60}) for i, text in enumerate(texts)]
    file.write_text("\n".join(lines))
    ran = tidemark("import", "texts", str(file), "--source", "notes", "--month", month, "--replace")
    assert ran.code == 0


def joined_words(text: str) -> str:
    """Return the words of a printed table with single spaces between them."""
    return re.sub(r"[\s│]+", " ", text)


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the environment: commands set defaults for Prefect there."""
    before = dict(os.environ)  # noqa: TID251
    yield
    os.environ.clear()  # noqa: TID251
    os.environ.update(before)  # noqa: TID251


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def tidemark(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., Ran]:
    """Run a command in this process; ``at`` is the data root, ``settings`` become TIDEMARK_…"""

    def tidemark(*arguments: str | Path, at: Path = home, **settings: str | Path) -> Ran:
        with monkeypatch.context() as patch:
            patch.setenv("TIDEMARK_HOME", str(at))
            patch.setenv("TIDEMARK_DEVICE", "cpu")
            for name, value in settings.items():
                patch.setenv(f"TIDEMARK_{name.upper()}", str(value))
            patch.setattr(sys, "argv", ["tidemark", *map(str, arguments)])
            patch.setattr(typer.main, "get_command", _get_command)
            capsysbinary.readouterr()
            _let_prefect_log_to(sys.stderr)
            code = 0
            try:
                main()
            except SystemExit as end:
                code = int(end.code or 0)
        captured = capsysbinary.readouterr()
        return Ran(code, captured.out, captured.err.decode())

    return tidemark


@pytest.fixture
def first_page() -> Iterator[None]:
    """Let sites have the first page alone."""
    from reports.site.pages import overview
    from tests.reports.site.pages import pages_alone

    with pages_alone(overview):
        yield


@pytest.fixture
def at_hub(tidemark: Callable[..., Ran], hub: Any) -> Callable[..., Ran]:
    """Run a command in this process, with the simulated hub in place of the real one."""

    def run(*arguments: str | Path, **settings: str) -> Ran:
        return tidemark(*arguments, **({"sites__hub": hub.sites["hub"]} | settings))

    return run


def _let_prefect_log_to(stream: TextIO) -> None:
    """Point the console handlers of Prefect at ``stream``.

    They keep the stderr of the test in which logging was set up, which is closed when it ends.
    """
    loggers = [logging.getLogger(name) for name in [None, *logging.root.manager.loggerDict]]
    for handler in (each for logger in loggers for each in logger.handlers):
        if isinstance(handler, PrefectConsoleHandler):
            handler.console.file = stream


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "TIDEMARK_HOME": str(home)}


@pytest.fixture
def process(environment: dict[str, str], tmp_path: Path) -> Callable[..., Ran]:
    def process(*arguments: str | Path) -> Ran:
        done = subprocess.run(
            [TIDEMARK, *arguments], env=environment, cwd=tmp_path, capture_output=True, check=False
        )
        return Ran(done.returncode, done.stdout, done.stderr.decode())

    return process


@pytest.fixture
def losses_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a file of the LOSSES schema; ``broken`` is the row whose loss is negative."""

    def write(name: str, num_rows: int = 60, broken: int | None = None, **columns: Any) -> Path:
        rows = []
        for index in range(num_rows):
            row = loss_row(name, "news", dt.date(2024, 1 + index % 6, 1), f"d{index}")
            row["nll_nats"] = -1.0 if index == broken else 10.0 + index % 7
            rows.append(row | columns)
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=LOSSES), path)
        return path

    return write


@pytest.fixture(scope="session")
def web() -> Iterator[Web]:
    with serve(World(0, FIRST, LAST, stories_per_month=4)) as web:
        yield web


@pytest.fixture
def sites(web: Web, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    for key, url in web.urls.items():
        monkeypatch.setenv(f"TIDEMARK_SITES__{key.upper()}", url)
    monkeypatch.setenv("TIDEMARK_REQUEST_INTERVAL_S", "0")
    yield web
    web.faults.clear()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: index for index, letter in enumerate(["<s>", *letters])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
        bos_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")
    fast.save_pretrained(folder)
    return folder


@pytest.fixture
def dump(home: Path) -> Callable[..., dict[str, list[tuple[Any, ...]]]]:
    """Return every table of a writer's database, rows sorted, without times and measurements."""

    def dump(at: Path = home, **settings: Any) -> dict[str, list[tuple[Any, ...]]]:
        with connected(Settings(home=str(at), **settings)) as connection:
            tables = {table: f"from {qualify(table)}" for table in list_tables()}
            tables["cell_costs"] = (
                "select * exclude (scored_at, seconds, peak_memory_bytes, energy_joules, "
                "matmul_flops) from cell_costs"
            )
            tables["canary_runs"] = "select * exclude (run_at) from canary_runs"
            return {
                table: sorted(connection.sql(rows).fetchall(), key=repr)
                for table, rows in tables.items()
            }

    return dump


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small-disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tidemark-test", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"mount cannot be run: {error}")
    if done.returncode:
        pytest.skip(f"this user may not mount a small disk: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
