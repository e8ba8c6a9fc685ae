"""Makers of pages: from made-up data, and from records by the program."""

import html
import json
import pathlib
import re
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
KVMARK = None  # the program; without it only pages of made-up data are opened

# In the order in which the program joins them.
SCRIPTS = re.findall(r"bench/page/(\S+\.js)",
                     (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8"))
CHART_JS = pathlib.Path("/usr/share/javascript/chart.js/chart.min.js")  # of libjs-chart.js


def assembled(data):
    """The text of a page: the template filled with `data`, as the program fills it."""
    folder = SOURCE / "bench/page"
    parts = {
        "@title@": html.escape(data["title"]),
        "@style@": (folder / "page.css").read_text(encoding="utf-8"),
        "@data@": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        "@chart@": CHART_JS.read_text(encoding="utf-8"),
        "@script@": "\n".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS),
    }
    template = (folder / "page.html").read_text(encoding="utf-8")
    return "".join(parts.get(line.strip(), line) for line in template.splitlines(keepends=True))


def reported(*records):
    """The text of the page that the program writes of files of results/reference."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "report.html")
        runs = [SOURCE / "results/reference" / name for name in records]
        subprocess.run([KVMARK, "report", *runs, "-o", page, "--no-plots"], check=True,
                       capture_output=True)
        return page.read_text(encoding="utf-8")


def rows_of(name):
    """The records of a file of results/reference."""
    text = (SOURCE / "results/reference" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
