"""The picture of a page, taken by the script as a person would call it."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from core.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("options", "height"), [((), 1516), (("--max-height", "300"), 300)])
def test_a_page_becomes_a_picture(options: tuple[str, ...], height: int, tmp_path: Path) -> None:
    chromium = load_settings().chromium
    if chromium is None or not chromium.exists():
        pytest.skip("no system Chromium (see `make test`)")
    page, picture = tmp_path / "page.html", tmp_path / "pictures" / "page.png"
    page.write_text("<!doctype html><div style='height: 1500px'>all of it</div>", encoding="utf-8")
    script = ROOT / "deployments" / "screenshot.py"
    subprocess.run([sys.executable, script, page, picture, *options], cwd=tmp_path, check=True)
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (1280, height)
