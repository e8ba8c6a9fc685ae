"""The table of all rows."""

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import made_up
from browser import PageTest
from pages import assembled


class TableTest(PageTest):
    data = made_up.page()

    def column(self, index):
        """The texts of a column, as shown."""
        return self.js("""return [...document.querySelectorAll('#table tbody tr')].map(
            row => row.cells[arguments[0]]?.textContent)""", index)

    def figures(self, index):
        return [float(text) for text in self.column(index) if text and text[0].isdigit()]

    def header(self, title):
        """(index, button) of a column's head."""
        heads = self.all("#table thead th")
        return next((i, head.find_element(By.TAG_NAME, "button")) for i, head in enumerate(heads)
                    if head.text.split("\n")[0].startswith(title))

    def test_sorting_by_mouse_and_keyboard(self):
        index, button = self.header("TPOT p50")
        head = self.all("#table thead th")[index]
        wanted = sorted(row["values"]["latency.tpot_ms.p50"] for row in self.data["rows"]
                        if row["counts"])
        self.press(button)
        shown = self.figures(index)
        self.assertEqual(len(shown), len(wanted))
        for figure, value in zip(shown, wanted):
            self.assertAlmostEqual(figure, value, delta=1e-3 * value)  # four digits are shown
        self.assertEqual(head.get_attribute("aria-sort"), "ascending")
        button.send_keys(Keys.ENTER)
        self.assertEqual(head.get_attribute("aria-sort"), "descending")
        self.assertEqual(self.figures(index), shown[::-1])
        # Without a figure: last, whatever the direction.
        self.assertIn("skipped", self.texts("#table tbody tr")[-1])

    def test_filter_status_and_columns(self):
        self.type_into("#table-filter", "INT8 one:nothing")
        self.assertEqual(self.texts("#table tbody tr"), [])
        self.type_into("#table-filter", "int8 8192")
        self.assertEqual(len(self.texts("#table tbody tr")), 1)
        self.type_into("#table-filter", "int8 8,192")
        self.assertEqual(len(self.texts("#table tbody tr")), 1)
        self.type_into("#table-filter", "died")
        self.assertIn("failed: died: " + made_up.HOSTILE, self.texts("#table tbody tr")[0])
        self.type_into("#table-filter", " ")
        self.choose("#table-status", "invalid")
        self.assertEqual(self.find("#table-count").text.split(",")[0], "1 of 15 rows")
        self.assertIn("above the gate", self.texts("#table tbody tr")[0])
        self.choose("#table-status", "all")
        self.click("#table-form summary")
        self.press(self.find("[id='column-latency.itl_ms.p50']"))
        index, _ = self.header("ITL p50")
        self.assertEqual(self.column(index)[0], "8.250")

    def test_bytes_are_exact_under_the_pointer(self):
        index, _ = self.header("KV reserved")
        value = self.data["rows"][0]["values"]["memory.kv_reserved_bytes"]
        cell = self.find(f"#table tbody tr td:nth-child({index + 1})")
        self.assertEqual([cell.text, cell.get_attribute("title")],
                         ["9 MiB", f"{value} bytes (9 MiB)"])

    def test_doubts_are_marked(self):
        marks = self.all("#table .doubt")
        self.assertEqual([m.get_attribute("aria-label") for m in marks],
                         ["doubtful: threads had to wait for a core"])

    def test_generic_kernels_are_marked(self):
        row = {**made_up.row("contiguous/f16", 1024), "generic": True}
        self.open(assembled(made_up.page(rows=[row])))
        self.assertEqual(self.find("#table .doubt").get_attribute("aria-label"),
                         "doubtful: generic kernel")
        self.assertEqual(self.texts("#table td.note"), ["generic kernel"])
