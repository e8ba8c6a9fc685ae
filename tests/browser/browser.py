"""A headless Chromium that a test drives, and what it says about a page."""

import atexit
import base64
import functools
import json
import os
import pathlib
import tempfile
import time
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from pages import assembled

# A person who wants to look at the pages: SHOTS=DIR, and every named picture is kept there.
SHOTS = os.environ.get("SHOTS")


def new_driver():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--force-color-profile=srgb", "--no-first-run"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


@functools.cache
def the_driver():
    """One browser for all tests; it ends with them."""
    driver = new_driver()
    atexit.register(driver.quit)
    return driver


def luminance(colour):
    """Relative luminance of #rrggbb (WCAG 2)."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour, other):
    """Of two colours (WCAG 2), from 1 to 21."""
    dim, bright = sorted(map(luminance, (colour, other)))
    return (bright + 0.05) / (dim + 0.05)


class PageTest(unittest.TestCase):
    """Each test begins with the page of `data`, fresh, wide and light, and must leave it without
    complaints."""

    data = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "page.html"
        self.driver = the_driver()
        self.open(self.text())

    def tearDown(self):
        self.assert_quiet()

    def text(self):
        """The page to open."""
        return assembled(self.data)

    def open(self, text):
        """Opens a page's text from a file; the logs begin with it."""
        self.path.write_text(text, encoding="utf-8")
        self.light("light")
        self.resize(1440)
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(self.path.as_uri())

    def cdp(self, command, **parameters):
        return self.driver.execute_cdp_cmd(command, parameters)

    def resize(self, width):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900,
                 deviceScaleFactor=1, mobile=False)

    def light(self, scheme, media=""):
        self.cdp("Emulation.setEmulatedMedia", media=media, features=[
            {"name": "prefers-color-scheme", "value": scheme}])

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def find(self, css):
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def texts(self, css):
        return self.js("""return [...document.querySelectorAll(arguments[0])].map(
            element => element.textContent)""", css)

    def click(self, css):
        self.press(self.find(css))

    def press(self, element):
        self.js("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def choose(self, css, text):
        """The option of a select whose text begins so."""
        select = Select(self.find(css))
        option = next(o for o in select.options if o.text.startswith(text))
        select.select_by_visible_text(option.text)

    def type_into(self, css, text):
        field = self.find(css)
        field.clear()
        field.send_keys(text)

    def wait_for(self, script, wanted):
        """What follows from an event is there a moment later."""
        end = time.monotonic() + 5
        while self.js(script) != wanted and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(self.js(script), wanted)

    # ---- The chart ----

    def show_view(self, title):
        self.press(next(b for b in self.all("#views button") if b.text == title))

    def series(self):
        """[{label, data}] of what is drawn."""
        return self.js("""return Chart.getChart('chart').data.datasets.map(
            ({label, data}) => ({label, data}));""")

    def hover(self, dataset, point):
        """Moves the mouse onto a point; what the tooltip says, as lines."""
        self.js("document.getElementById('chart').scrollIntoView({block: 'center'})")
        x, y = self.js("""
            const chart = Chart.getChart('chart');
            const {x, y} = chart.getDatasetMeta(arguments[0]).data[arguments[1]];
            return [x - chart.width / 2, y - chart.height / 2];""", dataset, point)
        ActionChains(self.driver).move_to_element_with_offset(
            self.find("#chart"), round(x), round(y)).perform()
        return self.js("""
            const {opacity, title, body} = Chart.getChart('chart').tooltip;
            return opacity === 0 ? [] : [...title, ...body.flatMap(({lines}) => lines)];""")

    def scale_types(self):
        return self.js("""const {x, y} = Chart.getChart('chart').scales;
                          return [x.type, y.type];""")

    def axis_titles(self):
        return self.js("""const {x, y} = Chart.getChart('chart').options.scales;
                          return [x.title.text, y.title.text];""")

    # ---- What went wrong ----

    def requests(self):
        """What was asked for since the last look, but for what the page itself holds."""
        messages = [json.loads(entry["message"])["message"]
                    for entry in self.driver.get_log("performance")]
        asked = [message["params"]["request"]["url"] for message in messages
                 if message["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith("data:")]

    def assert_quiet(self):
        """No errors on the console; nothing was asked for but the page itself."""
        errors = [entry["message"] for entry in self.driver.get_log("browser")
                  if entry["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(errors, [])
        self.assertEqual([url for url in self.requests() if url != self.path.as_uri()], [])

    def assert_no_overflow(self, width):
        """The chart follows a new width a moment later."""
        self.wait_for(f"return document.documentElement.scrollWidth <= {width}", True)

    # ---- For a person ----

    def shoot(self, name):
        """Keeps a picture of the whole page."""
        if SHOTS:
            width, height = self.js("""const {scrollWidth, scrollHeight} = document.documentElement;
                                       return [scrollWidth, scrollHeight];""")
            shot = self.cdp("Page.captureScreenshot", captureBeyondViewport=True, clip={
                "x": 0, "y": 0, "width": width, "height": height, "scale": 1})
            self.keep(f"{name}.png", base64.b64decode(shot["data"]))

    def keep(self, name, content):
        if SHOTS:
            pathlib.Path(SHOTS, name).write_bytes(content)
