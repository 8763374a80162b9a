import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from core.settings import Settings
from extras.browser_questions.tests.browser.conftest import Pages, leftovers
from simulator.server import Web
from tests.forks import ROOT

NUM_PAGES = 30
MAX_BYTES = 700_000_000
CRAWL = """
import sys
from core.settings import Settings
from extras.browser_questions.browser.fetching import Browser
from extras.browser_questions.browser.session import Session
from crawlers.web.fetcher import Fetcher
settings = Settings.model_validate_json(sys.argv[1])
fetcher = Fetcher(settings, {"pages": settings.sites["pages"]}, 0.0)
with Browser(settings, fetcher) as browser:
    session = Session(browser)
    for number in range(int(sys.argv[2])):
        body = session.read(f"{settings.sites['pages']}/page{number}", "p.last").body
        assert body.count(b"<p") >= 400
"""
SCRIPT = """
addEventListener('DOMContentLoaded', () => {
  for (let n = 0; n < 400; n++) {
    const p = document.createElement('p');
    p.textContent = 'A sentence of the article that a script writes. '.repeat(20);
    document.body.append(p);
  }
  document.body.lastChild.className = 'last';
});
window.ballast = new Array(2e6).fill(0).map((_, n) => n);  // 16 MB, as of a heavy page
"""


def proportional_bytes(process: psutil.Process) -> int:
    """Return the resident memory (Pss) of a process and its children."""
    total = 0
    for each in [process, *process.children(recursive=True)]:
        try:
            lines = Path(f"/proc/{each.pid}/smaps_rollup").read_text().splitlines()
        except OSError:  # it has ended
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


@pytest.mark.slow
def test_thirty_pages_take_at_most_700_mb_and_leave_nothing(
    web: Web, pages: Pages, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    pages.add("/heavy.js", SCRIPT, "text/javascript")
    for number in range(NUM_PAGES):
        pages.add(f"/page{number}", "<body><script src=/heavy.js></script></body>")
    own = settings.model_copy(update={"sites": web.urls, "request_interval_s": 0})
    command = [sys.executable, "-c", CRAWL, own.model_dump_json(), str(NUM_PAGES)]
    folder = tempfile.gettempdir()
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "TMPDIR": folder}
    environment["HOME"] = folder
    peak = 0
    with subprocess.Popen(command, cwd=ROOT, env=environment) as crawl:
        root = psutil.Process(crawl.pid)
        while crawl.poll() is None:
            peak = max(peak, proportional_bytes(root))
            time.sleep(0.1)
    assert crawl.returncode == 0
    with capsys.disabled():
        sys.stderr.write(f"{NUM_PAGES} pages: {peak / 1e6:.0f} MB\n")
    assert 2**26 < peak <= MAX_BYTES
    assert leftovers() == set()
