"""Hook of mkdocs.yml: the site's search names the page of each hit, and ranks the handbook first.

The search of mkdocs has a title for each section, such as "Drain", and no weight of a page. After
the build this adds the page to the titles, a boost to the entries of the handbook, and to the
worker that makes the index the option with which lunr reads it. ci/docs_search.js makes the search
work where the site is opened as files, without a server.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

log = logging.getLogger("mkdocs.hooks.docs_search")

#: Pages that are looked up: they have many rows, and would otherwise stand before the handbook.
LOOKED_UP = ("reference/", "evidence/")

#: How much more a hit in the handbook counts.
BOOST = 3

#: What makes the search work without a server.
AS_FILES = Path(__file__).with_suffix(".js")

#: What the worker of mkdocs does with an entry, and what it is to do.
ADDS, ADDS_WITH_BOOST = "this.add(doc);", "this.add(doc, {boost: doc.boost});"


def on_post_build(*, config: Any, **_: Any) -> None:
    """Rewrite the entries of the search and its worker (mkdocs)."""
    folder = Path(config["site_dir"]) / "search"
    index = folder / "search_index.json"
    searched = json.loads(index.read_text(encoding="utf-8"))
    pages = {entry["location"]: entry["title"] for entry in searched["docs"]}
    for entry in searched["docs"]:
        location = entry["location"].partition("#")[0]
        entry["title"] = title(pages[location], entry["title"])
        entry["boost"] = 1 if location.startswith(LOOKED_UP) else BOOST
    text = json.dumps(searched)
    index.write_text(text, encoding="utf-8")
    (folder / "search_index.js").write_text(f"data = {text};\n", encoding="utf-8")

    worker = folder / "worker.js"
    script = worker.read_text(encoding="utf-8")
    if ADDS not in script:
        log.warning("search/worker.js of this mkdocs has no line %r.", ADDS)
    worker.write_text(script.replace(ADDS, ADDS_WITH_BOOST), encoding="utf-8")

    main = folder / "main.js"
    main.write_text(AS_FILES.read_text(encoding="utf-8") + main.read_text(encoding="utf-8"))


def title(page: str, section: str) -> str:
    """Return the title of a hit: the page and its section, or the page alone."""
    return page if section == page else f"{page}: {section}"
