import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.server import Fault, Web
from tests.tiers import needs_extra

Tidemark = Callable[..., Any]


def cells(tidemark: Tidemark) -> list[str]:
    cell = "source || ' ' || strftime(month, '%Y-%m')"
    sql = f"select {cell} as cell from internal.landed_cells order by 1"
    return [row["cell"] for row in json.loads(tidemark("sql", sql, "--format", "json").out)]


def test_a_month_with_a_hole_and_then_a_range(
    tidemark: Tidemark, home: Path, sites: Web, tmp_path: Path, first_page: None
) -> None:
    """A model that fails is a hole with a name, and the others are scored."""
    which = ("-s", "wikipedia_new", "-s", "hackernews", "-m", "control:zstd")
    ran = tidemark("run", "--month", "2024-02", *which, "-m", tmp_path).expect(1)
    report = home / "report" / "index.html"
    assert ran.out == f"partial, 1 hole: 2 partitions, 2 cells, report {report}\n"
    [failure] = [line for line in ran.err.splitlines() if line.startswith("failed: ")]
    assert f"{tmp_path}: has no config.json" in failure
    assert "Traceback" not in ran.err
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert cells(tidemark) == ["hackernews 2024-02", "wikipedia_new 2024-02"]

    ran = tidemark("backfill", "--from", "2024-01", "--to", "2024-02", *which)
    assert ran.code == 0, ran.err
    assert ran.out == f"complete: 4 partitions, 2 cells, report {report}\n"
    assert len(cells(tidemark)) == 4

    asked = len(sites.requests)
    assert tidemark("backfill", "--from", "2024-01", "--to", "2024-02", *which).code == 0
    assert len(sites.requests) == asked


@pytest.mark.slow
@needs_extra("arxiv")
def test_a_partial_month_is_named_and_fails_nothing(tidemark: Tidemark, sites: Web) -> None:
    which = ("-s", "arxiv", "-s", "wikipedia_new", "-m", "control:zstd")
    sites.faults.append(Fault("status", "arxiv", r"/src/\d+\.\d+0003v1", 99, 501))
    ran = tidemark("run", "--month", "2024-01", *which)
    again = tidemark("crawl", "--month", "2024-01", "-s", "arxiv", "-s", "wikipedia_new")
    sites.faults.clear()
    assert ran.code == 0, ran.err
    first, partial = ran.out.splitlines()[-2:]
    assert first.startswith("complete: 2 partitions (1 of them partial), 2 cells")
    assert partial.startswith("partial: arxiv 2024-01: ")
    assert "501" in partial or "http_5xx" in partial
    assert again.code == 0, again.err
    line, whole = again.out.splitlines()
    assert line.startswith("arxiv 2024-01: ")
    assert "(partial: " in line
    assert whole == "wikipedia_new 2024-01: 4 documents"
    ran = tidemark("run", "--month", "2024-01", *which)
    assert ran.out.splitlines()[-1].startswith("complete: 2 partitions, 1 cell")


def test_reparse_and_replace_exclude_each_other(tidemark: Tidemark, sites: Web) -> None:
    crawl = ("crawl", "-s", "wikipedia_new", "--month", "2024-01")
    assert tidemark(*crawl, "--reparse", "--replace").code == 2
    assert tidemark(*crawl).code == 0
    asked = len(sites.requests)
    assert tidemark(*crawl, "--reparse").out == "wikipedia_new 2024-01: 4 documents\n"
    assert len(sites.requests) == asked
    assert tidemark(*crawl, "--replace").code == 0
    assert len(sites.requests) > asked
