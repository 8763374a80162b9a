"""docs/follow-a-failing-month.md: its two faults give what the page prints."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.month import Month
from simulator.server import Fault, Web, serve
from simulator.world import World
from tests.commands import Ran

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "follow-a-failing-month.md").read_text("utf-8")
BLOCKS = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
PAGES = re.findall(r"/government/news/([\w-]+)", BLOCKS[3])
WORLD = World(0, Month("2024-01"), Month("2024-03"))
RUN = (
    "run", "--month", "2024-03", "--source", "arxiv", "--source", "govuk", "--model",
    "control:zstd",
)  # fmt: skip


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    with serve(WORLD) as web:
        for source, url in web.urls.items():
            monkeypatch.setenv(f"TIDEMARK_SITES__{source.upper()}", url)
        monkeypatch.setenv("TIDEMARK_REQUEST_INTERVAL_S", "0")
        web.faults.append(Fault("status", "arxiv", times=1000, status=200, body=b"<!doctype x"))
        for page in PAGES:
            web.faults.append(Fault("status", "govuk", page, times=1000, status=503))
        yield web


def missing(block: str, *outputs: str) -> list[str]:
    """Return the lines of a block that no output has; ``…`` stands for any text."""
    found = " ".join(" ".join(outputs).split())
    absent = []
    for line in block.splitlines():
        words = " ".join(re.sub(r"^│|│$", "", line).split())
        pattern = re.escape(words).replace("…", ".*?")
        if not re.search(pattern, found):
            absent.append(line)
    return absent


@pytest.mark.slow
def test_the_page_prints_what_a_failing_month_gives(
    tidemark: Callable[..., Ran], faulty: Web, home: Path
) -> None:
    end, status, record, manifest, again = BLOCKS
    first = tidemark(*RUN).expect(1)
    Path("/tmp/papers/f1").write_text(first.out + "=====\n" + first.err)
    st = tidemark("status", "--month", "2024-03")
    Path("/tmp/papers/f2").write_text(st.out + st.err)
    sh = tidemark("corpus", "show", "govuk", "2024-03", "--dropped")
    Path("/tmp/papers/f3").write_text(sh.out + sh.err)
    faulty.faults.clear()
    second = tidemark(*RUN)
    Path("/tmp/papers/f4").write_text(str(second.code) + second.out + second.err)
    show = tidemark("corpus", "show", "govuk", "2024-03")
    Path("/tmp/papers/f5").write_text(show.out)
