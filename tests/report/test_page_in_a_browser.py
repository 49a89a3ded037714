"""No page is wider than a phone or a screen; this is measured where there is a browser."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from session_builder import write_job

BROWSER = shutil.which("chromium")
RECORDED = Path(__file__).parents[1] / "outputs" / "h200" / "session-x2"

#: Opens all folded parts of a page in a frame, and lists what is wider than the frame.
MEASURE = """<!doctype html>
<iframe src="{page}" style="width:{width}px;height:900px;border:0"></iframe>
<script>
document.querySelector("iframe").onload = (event) => {{
  const shown = event.target.contentDocument, wide = [];
  for (const one of shown.querySelectorAll("details")) one.open = true;
  for (const one of shown.querySelectorAll("body *:not(svg *):not(.skip):not(.shapes)")) {{
    const box = one.getBoundingClientRect();
    const scrolls = getComputedStyle(one).overflowX == "auto" && one.scrollWidth > one.clientWidth;
    if (box.width && (box.right > {width} + 1 || box.left < -1 || scrolls))
      wide.push(`${{one.tagName}} ${{one.className}}`);
  }}
  document.body.dataset.wide = wide.join(", ");
  document.body.dataset.cells = shown.querySelectorAll("td").length;
}};
</script>
"""

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(BROWSER is None, reason="there is no chromium"),
]


def too_wide(page, width):
    """Return what of a page is wider than a frame or scrolls in it."""
    measure = page.with_name("measure.html")
    measure.write_text(MEASURE.format(page=page.name, width=width))
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
         f"--user-data-dir={page.parent / 'browser'}", "--window-size=1400,1000",
         "--virtual-time-budget=10000", "--dump-dom", measure.as_uri()],
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    measured = re.search(r'data-wide="([^"]*)" data-cells="(\d+)"', done.stdout)
    assert measured is not None and int(measured[2]) > 10
    return measured[1]


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_the_screen(command, tmp_path, width):
    nodes = {f"nid{number:06}": 10.0 for number in range(1, 39)} | {"nid000039": 7.0}
    write_job(tmp_path / "results", nodes | {"nid000040": None})
    for name, what in (("nodes", tmp_path / "results"), ("recorded", RECORDED)):
        done = command("report", what, "--output", tmp_path / name, code=None)
        page = Path(done.stdout.splitlines()[-1].removeprefix("Report: "))
        assert too_wide(page, width) == "", name
        if name == "nodes" and width == 390:
            page.write_text(page.read_text().replace("max-width: 47.99rem", "max-width: 9rem"))
            assert too_wide(page, width)


@pytest.mark.skipif(shutil.which("pdfinfo") is None, reason="there is no pdfinfo")
def test_on_paper_are_the_verdict_and_the_findings(command, tmp_path):
    command("report", RECORDED, "--output", tmp_path / "page", code=None)
    page = tmp_path / "page" / "index.html"
    closed = pages_on_paper(page)
    text = page.read_text()
    page.write_text(text.replace('<details class="section"', '<details open class="section"'))
    assert page.read_text() != text
    assert closed <= 3 < pages_on_paper(page)


def pages_on_paper(page):
    """Return how many sheets a page takes."""
    sheet = page.with_name("page.pdf")
    subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
         f"--user-data-dir={page.parent / 'browser'}", f"--print-to-pdf={sheet}", page.as_uri()],
        capture_output=True, check=True, timeout=100,
    )  # fmt: skip
    told = subprocess.run(["pdfinfo", str(sheet)], capture_output=True, text=True, check=True)
    return int(re.search(r"Pages:\s+(\d+)", told.stdout)[1])
