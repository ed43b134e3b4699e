"""Photograph every page of the built site, and fail where one is wider than its window.

    python scripts/docs_look.py docs/_build/html docs/_build/look [PAGE ...]

Each page is opened in headless Chromium at three widths, and once more in dark mode. The width is
asked of the browser after layout. Pictures are for people to look at: see CONTRIBUTING.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, sync_playwright
from tqdm import tqdm

WIDTHS = (1400, 1024, 390)

_SCHEMES: tuple[tuple[Literal["light", "dark"], tuple[int, ...]], ...] = (
    ("light", WIDTHS),
    ("dark", WIDTHS[:1]),
)

# What sticks out of the window although no box around it scrolls or cuts it off.
_OVERFLOWING = """() => {
  const width = document.documentElement.clientWidth;
  const inside = (node) => {
    for (let box = node.parentElement; box && box !== document.body; box = box.parentElement) {
      if (getComputedStyle(box).overflowX !== "visible") return true;
    }
    return false;
  };
  const found = [];
  for (const node of document.querySelectorAll("main *")) {
    const right = node.getBoundingClientRect().right;
    if (right > width + 1 && !inside(node)) {
      found.push(node.tagName.toLowerCase() + "." + node.className + " to " + Math.round(right));
    }
  }
  const page = document.documentElement.scrollWidth;
  if (page > width) found.unshift("the page: " + page + " of " + width);
  return found;
}"""


def overflows(page: Page) -> list[str]:
    """Return what is wider than the window, the page itself first."""
    found: list[str] = page.evaluate(_OVERFLOWING)
    return found


def look(site: Path, pictures: Path, pages: list[Path]) -> list[str]:
    """Photograph the pages at each width; return a line for each page and width that overflows."""
    wrong = []
    pictures.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    # Chromium's sandbox refuses to run as root, as in containers; it loads our own files alone.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=chromium, args=flags)
        for file in tqdm(pages, desc="looking", disable=None):
            name = file.relative_to(site).with_suffix("").as_posix().replace("/", "-")
            for scheme, widths in _SCHEMES:
                page = browser.new_page(color_scheme=scheme)
                page.goto(file.resolve().as_uri())
                for width in widths:
                    page.set_viewport_size({"width": width, "height": 900})
                    page.screenshot(path=pictures / f"{name}-{width}-{scheme}.png", full_page=True)
                    if scheme == "light" and (found := overflows(page)):
                        wrong.append(f"{name} at {width}: {'; '.join(found[:3])}")
                page.close()
        browser.close()
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="Photograph every page of the built site.")
    parser.add_argument("site", type=Path, help="the folder that Sphinx wrote")
    parser.add_argument("pictures", type=Path, help="where the pictures go")
    parser.add_argument("page", nargs="*", help="pages by their path without .html; all by default")
    told = parser.parse_args()
    if told.page:
        pages = [told.site / f"{page}.html" for page in told.page]
    else:
        pages = sorted(file for file in told.site.rglob("*.html") if "_static" not in file.parts)
    wrong = look(told.site, told.pictures, pages)
    for line in wrong:
        print(line)
    print(f"{len(pages)} pages at {len(WIDTHS)} widths: {len(wrong)} overflow")
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
