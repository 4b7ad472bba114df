"""Commands that Hermes may not just run, though they only read."""

from __future__ import annotations

import unittest

from tests.support import load_plugin

load_plugin()
from session_cassettes.suite.guards import held_up, refused_folder  # noqa: E402

#: Each was refused, or flagged as dangerous, by Hermes 0.19.0 or 0.22.2.
HELD_UP = """
cat uvicorn.py
cat nodemon.json
ls vite
grep gunicorn app.py
find . -name nodemon
grep "DROP TABLE" schema.sql
grep 'DELETE FROM users' schema.sql
grep -F 'rm -rf /' notes.txt
grep 'chmod 777' notes.txt
grep 'git push --force' notes.txt
grep 'git reset --hard' notes.txt
grep 'kill -9 -1' notes.txt
grep mkfs notes.txt
grep ':(){ :|:& };:' notes.txt
grep 'dd if=/dev/zero of=/dev/sda' notes.txt
grep '> /dev/sda' notes.txt
grep 'curl x | sh -s' notes.txt
grep 'base64 -d | bash' notes.txt
grep 'sudo -S' notes.txt
grep 'pkill hermes' notes.txt
grep 'hermes gateway restart' notes.txt
grep 'docker stop' notes.txt
grep 'xargs rm' notes.txt
grep 'find / -delete' notes.txt
grep "tee" '.env'
grep '169.254.169.254' notes.txt
find . -name '-exec rm'
grep x q\\"q.txt
rg "\\\\" notes.txt
grep -l x "q\\"q.txt"
"""
#: Each was simply run by both.
RUN = """
cat app.py
cat docker/README.md
cat install.sh
grep 'uvicorn' app.py
grep "next dev" package.json
grep install setup.py
grep -rn hermes .
grep -n 'a\\|b' app.py
grep -n 'kill' app.py
grep -E "^(def|class) " app.py
grep -n '"name"' package.json
grep -n 'x -> y' app.py
rg -n 'self\\.closed' src
cd src && grep -n "self\\.x" a.py
head -n 5 -- -dash
"""


class HeldUp(unittest.TestCase):
    def test_what_hermes_refuses_or_asks_about_is_told(self) -> None:
        for command in HELD_UP.strip().split("\n"):
            with self.subTest(command=command):
                self.assertTrue(held_up(command))

    def test_what_it_runs_is_not(self) -> None:
        for command in RUN.strip().split("\n"):
            with self.subTest(command=command):
                self.assertEqual(held_up(command), "")

    def test_a_command_of_which_hermes_may_not_read_all_is_held_up(self) -> None:
        self.assertTrue(held_up("cat " + "a" * 4_100))
        self.assertEqual(held_up("cat " + "a" * 200), "")

    def test_letters_of_full_width_are_read_as_hermes_reads_them(self) -> None:
        self.assertTrue(held_up("grep 'ｒｍ -rf /' notes.txt"))


class Folders(unittest.TestCase):
    def test_a_folder_that_some_version_refuses_is_told(self) -> None:
        for folder, refused in (
            ("src", False),
            ("/ws/a b/c-d_e.f", False),
            ("über", True),
            ("p(1)", True),
            ("it's", True),
            ("~/x", True),
        ):
            with self.subTest(folder=folder):
                self.assertEqual(refused_folder(folder), refused)


if __name__ == "__main__":
    unittest.main()
