#!/usr/bin/python3
"""Opens pages in headless Chromium and uses them as a person would.

usage: run.py [--kvmark PROGRAM] [unittest options]

Pages of made-up data are put together here. With a program, pages that it writes of the committed
records are opened too. SHOTS=DIR keeps pictures of the pages there.
"""

import pathlib
import sys
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import pages  # noqa: E402 (the folder comes first)

if __name__ == "__main__":
    if "--kvmark" in sys.argv:
        at = sys.argv.index("--kvmark")
        pages.KVMARK = str(pathlib.Path(sys.argv[at + 1]).resolve())
        del sys.argv[at:at + 2]
    unittest.main(module=None, argv=[sys.argv[0], "discover", "-s", str(FOLDER), *sys.argv[1:]])
