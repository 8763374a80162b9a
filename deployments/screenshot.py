r"""Take a picture of a page, as for the README.

    .venv/bin/python deployments/screenshot.py --max-height 1240 \
        tidemark-demo/report/index.html docs/images/report.png

Uses the browser that TIDEMARK_CHROMIUM names, else the system's, else Playwright's own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import sync_playwright

from core.settings import load_settings

# The page is a file of our own: no sandbox is needed, nor anything that reaches the network.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip


def take(page: Path, picture: Path, width: int = 1280, max_height: int | None = None) -> None:
    """Write a PNG of a page, from its top.

    Args:
        page: an HTML file.
        picture: where the PNG goes; its folder is made.
        width: of the browser's window, in CSS pixels.
        max_height: cut the picture there; None shows the whole page.
    """
    picture.parent.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=load_settings().chromium, args=FLAGS)
        window = browser.new_page(viewport={"width": width, "height": max_height or 800})
        window.goto(page.resolve().as_uri())
        window.screenshot(path=picture, full_page=max_height is None)
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", type=Path, help="HTML file")
    parser.add_argument("picture", type=Path, help="PNG to write")
    parser.add_argument("--width", type=int, default=1280, help="of the window, in pixels")
    parser.add_argument("--max-height", type=int, help="cut there; default: the whole page")
    arguments = parser.parse_args()
    take(arguments.page, arguments.picture, arguments.width, arguments.max_height)
