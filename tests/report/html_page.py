"""A page as a test reads it: what can be said of it without a browser."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "use", "rect", "circle", "path", "line", "stop"}
LANDMARKS = {"header", "nav", "main", "footer"}


class Page(HTMLParser):
    """Elements of a page in order, with their attributes and the text in them."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self._open = []
        self.feed(text)
        assert not self._open, f"never closed: {[one['tag'] for one in self._open]}"

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        one = {"tag": tag, "text": "", "in": [each["tag"] for each in self._open], **dict(attrs)}
        self.elements.append(one)
        if tag not in VOID:
            self._open.append(one)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            last = self._open.pop()
            assert last["tag"] == tag, f"<{last['tag']}> is closed by </{tag}>"

    def handle_data(self, data):
        for one in self._open:
            one["text"] += data

    def all(self, *tags):
        return [one for one in self.elements if one["tag"] in tags]

    def text(self, tag="body"):
        return " ".join(self.all(tag)[0]["text"].split())


def faults(page):
    """Yield what a reader by keyboard, ear, or without a network would stumble over."""
    ids = [one["id"] for one in page.elements if "id" in one]
    yield from (f"id {one} twice" for one in set(ids) if ids.count(one) > 1)
    level = 0
    for heading in page.all("h1", "h2", "h3", "h4", "h5", "h6"):
        if int(heading["tag"][1]) > level + 1:
            yield f"{heading['text']!r} skips a level of headings"
        level = int(heading["tag"][1])
    if len(page.all("h1")) != 1:
        yield "not one h1"
    if page.all("html")[0].get("lang") != "en" or not page.text("title"):
        yield "no language or no title"
    yield from (f"not one {tag}" for tag in LANDMARKS if len(page.all(tag)) != 1)
    yield from _resources(page, ids)
    yield from _tables_and_regions(page)
    captions = sum("figure" in one["in"] for one in page.all("figcaption"))
    if captions != len(page.all("figure")):
        yield "a figure without a caption"
    for one in page.all("svg"):
        if not one.get("aria-label") and one.get("aria-hidden") != "true":
            yield "a drawing without a name"


def _resources(page, ids):
    for one in page.elements:
        if one["tag"] in ("script", "iframe", "object", "embed", "img", "foreignobject"):
            yield f"<{one['tag']}>"
        for name, value in one.items():
            if name.startswith("on") and name != "on":
                yield f"handler {name}"
            if name in ("href", "src") and value.startswith("#") and value[1:] not in ids:
                yield f"{value} leads nowhere"
            if name in ("href", "src") and ":" in value and value != "data:,":
                yield f"{value} leaves the folder"
    if any("@import" in one["text"] or "url(" in one["text"] for one in page.all("style")):
        yield "the style loads something"


def _tables_and_regions(page):
    for table in page.all("table"):
        if "div" not in table["in"]:
            yield "a table that cannot scroll"
    for cell in page.all("td"):
        if not cell.get("data-label"):
            yield "a cell without the name of its column"
    if len(page.all("caption")) != len(page.all("table")):
        yield "a table without a caption"
    yield from ("a head without scope" for one in page.all("th") if "scope" not in one)
    regions = [one for one in page.elements if one.get("role") == "region"]
    labels = [one.get("aria-label") for one in regions]
    if not all(labels) or len(set(labels)) < len(labels):
        yield f"regions without a name of their own: {labels}"
    yield from ("a region out of reach" for one in regions if one.get("tabindex") != "0")
