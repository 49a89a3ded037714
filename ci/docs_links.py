"""Hook of mkdocs.yml: links from docs/ to other files of the repository become their path.

The site has the pages of docs/ alone. A link to a file that is not there is a
warning, which fails the build.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

log = logging.getLogger("mkdocs.hooks.docs_links")

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<path>\.\./[^)#\s]*)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return a page's text with each link out of docs/ replaced by its text and the file's path."""

    def named(link: re.Match[str]) -> str:
        path = os.path.normpath(Path("docs", page.file.src_uri).parent / link["path"])
        if path.startswith("docs/") or path == "docs":
            return link[0]
        if not (ROOT / path).exists():
            log.warning("%s has a link to %s, which is not there.", page.file.src_uri, path)
        return f"{link['text']} (`{path}`)"

    return LINK.sub(named, markdown)
