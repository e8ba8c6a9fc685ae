"""What is removed of an earlier start."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest

import clear
import plot

OWN = ["loss.png", "loss.svg", "loss-12.png", "comparison.svg", "settings.txt", "comparison.json"]
OTHERS = ["loss-3.txt", "my-loss-1.png", "loss.png.bak", "records.jsonl", "comparison-1.json"]


class TestClear(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for file in OWN + OTHERS:
            open(os.path.join(self.folder, file), "w", encoding="utf-8").close()

    def test_every_plot_is_known(self):
        self.assertEqual({*clear.PLOTS}, {"comparison", *(one.name for one in plot.PLOTS)})

    def test_own_files_go_and_nothing_else(self):
        clear.remove_earlier(self.folder)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(OTHERS))

    def test_folders_stay(self):
        os.mkdir(os.path.join(self.folder, "heat_map.png"))
        clear.remove_earlier(self.folder)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(OTHERS + ["heat_map.png"]))

    def test_the_comparison_that_is_drawn_stays(self):
        clear.remove_earlier(self.folder, keep=os.path.join(self.folder, ".", "comparison.json"))
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(OTHERS + ["comparison.json"]))

    def test_any_python_can_do_it(self):
        # -S: without installed modules, so without matplotlib.
        subprocess.run([sys.executable, "-S", clear.__file__, self.folder], check=True)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(OTHERS))

    def test_what_cannot_be_is_2(self):
        missing = os.path.join(self.folder, "none")
        for arguments, said in [([], "usage"), ([missing], "none: No such")]:
            err = io.StringIO()
            with contextlib.redirect_stderr(err):
                self.assertEqual(clear.main(arguments), 2)
            self.assertIn(said, err.getvalue())


if __name__ == "__main__":
    unittest.main()
