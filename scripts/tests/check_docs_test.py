"""The documents' check must run what it should, rehearse what is slow, and see every failure."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).parents[1] / "check_docs.py"


def run_check(readme, docs=None):
    """(exit code, stdout, stderr) over a small tree with these pages."""
    with tempfile.TemporaryDirectory() as root:
        files = {"README.md": readme, "Makefile": "all:\n\t@touch made\nbad: nothing\n"}
        files.update({f"docs/{name}": text for name, text in (docs or {}).items()})
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        answer = subprocess.run(
            [sys.executable, CHECK, "--root", root], capture_output=True, text=True, check=False
        )
        return answer.returncode, answer.stdout, answer.stderr


class CheckDocs(unittest.TestCase):
    def test_good_commands_pass_and_are_counted(self):
        code, out, errors = run_check("```sh\ntrue\n# a remark\ntest \\\n  -f Makefile\n```\n")
        self.assertEqual(code, 0, errors)
        self.assertIn("2 commands, 0 failed", out)

    def test_failing_command_is_named_by_place(self):
        code, _, errors = run_check("text\n\n```sh\ntrue\nfalse\n```\n")
        self.assertEqual(code, 1)
        self.assertIn("README.md:5: false", errors)

    def test_pages_under_docs_count(self):
        code, _, errors = run_check("```sh\ntrue\n```\n", {"a.md": "```sh\nno_such_program\n```\n"})
        self.assertEqual(code, 1)
        self.assertIn("docs/a.md:2", errors)

    def test_other_blocks_are_not_run(self):
        code, out, _ = run_check("```sh\ntrue\n```\n```cpp\nfalse\n```\n```\nfalse\n```\n")
        self.assertEqual(code, 0)
        self.assertIn("1 commands", out)

    def test_commands_see_the_files_of_earlier_ones(self):
        code, _, errors = run_check("```sh\nmkdir -p results/a\n```\n\n```sh\ntest -d results/a\n```\n")
        self.assertEqual(code, 0, errors)

    def test_slow_make_is_only_rehearsed(self):
        code, out, errors = run_check("```sh slow\nmake\n```\n```sh\ntest ! -e made\n```\n")
        self.assertEqual(code, 0, errors)
        self.assertIn("make (rehearsed)", out)

    def test_slow_make_of_an_unknown_target_fails(self):
        code, _, errors = run_check("```sh slow\nmake no-such-target\n```\n")
        self.assertEqual(code, 1)
        self.assertIn("no-such-target", errors)

    def test_slow_kvmark_run_becomes_a_dry_run(self):
        code, _, errors = run_check("```sh slow\nnone/kvmark run a.yaml\n```\n")
        self.assertEqual(code, 1)
        self.assertIn("none/kvmark run a.yaml --dry-run", errors)

    def test_rehearsal_needs_no_fetched_model(self):
        block = "```sh slow\nresults/kvmark run a.yaml\n```\n"
        script = "#!/bin/sh\\necho \\047\\140make model\\140 fetches it\\047\\nexit {}\\n"
        for exit_code, expected in {2: 0, 3: 1}.items():
            make = f"printf '{script.format(exit_code)}' > results/kvmark"
            setup = f"```sh\nmkdir results\n{make}\nchmod +x results/kvmark\n```\n"
            code, _, errors = run_check(setup + block)
            self.assertEqual(code, expected, errors)

    def test_slow_command_without_a_program_fails(self):
        code, _, _ = run_check("```sh slow\nno_such_program --do it\n```\n")
        self.assertEqual(code, 1)

    def test_dead_link(self):
        good = "[a](docs/a.md) [b](https://example.org/x) [c](docs/a.md#part)\n```sh\ntrue\n```\n"
        self.assertEqual(run_check(good, {"a.md": ""})[0], 0)
        code, _, errors = run_check(good)
        self.assertEqual(code, 1)
        self.assertIn("README.md: link to docs/a.md", errors)

    def test_no_commands_at_all_is_a_failure(self):
        self.assertEqual(run_check("nothing\n")[0], 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
