"""`hermes cassette check` on real recordings, one lane per version: an untouched folder, and changed ones."""

from __future__ import annotations

import json
import os
import subprocess
import unittest
from pathlib import Path
from typing import Any

from tests.lanes.case import LaneCase, lane_suite, model
from tests.support import temp_folder

ToolCall, Step = model.ToolCall, model.Step

TOKEN = "ghp_" + "a1B2c3" * 6
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA75\n" * 3 + "-----END RSA PRIVATE KEY-----\n"
FILES: dict[str, str | bytes] = {
    "server/auth.py": "import os\n\nAUTH_PORT = 8080\n",
    "server/token.py": f"PORT = 8080\nTOKEN = '{TOKEN}'  # port\nURL = 'postgres://u:hunter2secret@db:5432/x'\n",
    "server/two.py": f"a = '{TOKEN}', b = 'sk-{TOKEN[4:]}', port = 8080\n",
    "server/call.py": "authorization: Bearer abcdefghijklmnopqrstuvwxyz0123\nport\n+14155550123\n",
    "key.txt": f"port\n{KEY}port 8080\n",
    "crlf.txt": "port\r\n8080\r\n",
    "bom.txt": "\ufeffport 8080\n",
    "latin.txt": b"port \xe9\n",
    "data.bin": b"port\0\1\2",
    "config.yaml": "port: 8080\napi_key: correct-horse-battery-staple\n",
    ".env": "PORT=8080\n",
    "id_rsa.txt": "port\n",
}


class Checked(LaneCase):
    def check(self, *words: str) -> tuple[int, str]:
        done = self.hermes("cassette", "check", *words, cwd=self.home.path)
        self.assertEqual(done.stderr, "")
        for secret in (TOKEN, "hunter2secret", "correct-horse", "MIIEpAIBAAKCAQEA75"):
            self.assertNotIn(secret, done.stdout)
        return done.returncode, done.stdout

    def command(self, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        done = self.hermes("cassette", *words, cwd=cwd)
        self.assertLess(done.returncode, 2, done.stdout + done.stderr)
        return done

    def record(self, name: str) -> Path:
        """Record a turn that meets files of every kind, a link in, a link out, and one that is missing."""
        folder = self.workspace(dict(FILES))
        outside = temp_folder(self) / "outside.txt"
        outside.write_text("port 8080\n")
        for link, target in (("inside.py", "server/auth.py"), ("outside.txt", str(outside))):
            os.symlink(target, folder / link)
        paths = (*FILES, "inside.py", "outside.txt", "docs/missing.md")
        self.script(
            Step([ToolCall("search_files", {"pattern": "port", "path": "."})]),
            Step([ToolCall("read_file", {"path": path}) for path in paths]),
            Step(text="server/auth.py binds port 8080"),
        )
        self.command("record", name, "--query", f"Which port? ({name})", cwd=folder)
        self.command("pin", name, "8080", cwd=folder)
        return folder

    def test_an_untouched_folder_is_as_recorded_also_when_its_times_are_others(self) -> None:
        folder = self.record("same")
        status, out = self.check("same")
        self.assertEqual((status, out.startswith("same: as recorded (")), (0, True), out)
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                os.utime(path, (5, 5))
        self.assertEqual(self.check("same"), (0, out))
        done = self.command("run", "same", cwd=folder)
        self.assertEqual((done.returncode, "note:" in done.stdout), (0, False), done.stdout)

    def test_each_change_is_told_and_a_run_says_that_there_are_some(self) -> None:
        folder = self.record("changed")
        auth = folder / "server/auth.py"
        auth.write_text(auth.read_text().replace("8080", "8181"))
        (folder / "bom.txt").unlink()
        (folder / "crlf.txt").write_bytes(b"port\n8080\n")
        token = folder / "server/token.py"
        token.write_text(token.read_text().replace("# port", "# the port"))
        (folder / "docs").mkdir()
        (folder / "docs/missing.md").write_text("here")
        status, out = self.check("changed", "--json")
        [found] = json.loads(out)["cassettes"]
        kinds = {one["path"]: one["kind"] for one in found["changes"]}
        expected = {"server/auth.py": "changed", "bom.txt": "gone", "crlf.txt": "changed", "server/token.py": "changed"}
        self.assertEqual((status, kinds), (1, {**expected, "docs/missing.md": "new"}))
        self.assertEqual((found["hermes"], found["unknown"]), ([], []))
        pin = next(one for one in found["pins"] if one["path"] == "server/auth.py")
        self.assertEqual((pin["line"], pin["now"]), (3, "AUTH_PORT = 8181"))
        text = self.check("changed")[1]
        self.assertIn('"8080" was in server/auth.py:3; that line now says AUTH_PORT = 8181', text)
        done = self.command("run", "changed", cwd=folder)
        self.assertEqual(done.returncode, 0, done.stdout)
        note = "note: the folder has changed since the recording: 4 of "
        self.assertIn(note, done.stdout.splitlines()[-1])
        self.assertTrue(done.stdout.endswith(" files; hermes cassette check changed\n"), done.stdout)

    def test_other_values_of_the_same_secrets_are_no_change(self) -> None:
        folder = self.record("rotated")
        for name in ("server/token.py", "server/two.py"):
            path = folder / name
            path.write_text(path.read_text().replace("a1B2c3", "Z9y8X7"))
        self.assertEqual(self.check("rotated")[0], 0)
        path = folder / "server/two.py"
        path.write_text(path.read_text().replace("8080", "8181"))
        status, out = self.check("rotated")
        self.assertEqual((status, out.splitlines()[1]), (1, "  changed  server/two.py:1"))


def load_tests(loader: unittest.TestLoader, _: Any, __: Any) -> unittest.TestSuite:
    return lane_suite(loader, Checked)


if __name__ == "__main__":
    unittest.main()
