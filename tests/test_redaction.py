"""Files over which a turn's end could take minutes: found before, skipped and named."""

from __future__ import annotations

import time
import unittest

from tests.support import REPO, temp_folder, write_tree
from tests.test_hooks import QUESTION, HookCase

from session_cassettes.cassette_store import Call
from session_cassettes.snapshot import (
    REDACTION_STEPS,
    SNAPSHOT_FILE_LIMIT,
    IgnoreRules,
    Redactor,
    Workspace,
    redaction_steps,
    take_snapshot,
)

SIZE = SNAPSHOT_FILE_LIMIT


def filled(unit: str, size: int = SIZE) -> str:
    return (unit * (size // len(unit) + 1))[:size]


#: Measured at a few KB to grow with the square of their length, or faster, in some version of Hermes.
COSTLY = {
    "beginnings of keys": filled("-----BEGIN PRIVATE KEY-----\n"),
    "beginnings that share their dashes": filled("-----BEGIN RSA PRIVATE KEY"),
    "beginnings after an end": "-----END PRIVATE KEY-----\n" + filled("-----BEGIN EC PRIVATE KEY-----\n"),
    "beginnings in the second half": filled("x = 1\n", SIZE // 2) + filled("-----BEGIN PRIVATE KEY-----\n", SIZE // 2),
    "addresses of databases": filled("redis://a:"),
    "addresses in any case": filled("PostgreSQL://a:b/"),
    "addresses that fold": filled("redi\u017f://a:"),
    "digits": filled("1"),
    "digits of another script": filled("\u0661\u0662"),
    "long numbers": filled("1" * 5_000 + "\n"),
}
#: The same, but for the stricter mode only.
COSTLY_SECRET = {
    "dotted names": filled("token."),
    "names and dots": filled("token", SIZE // 2) + filled(".", SIZE // 2),
    "shorter dotted names": filled("token." * 300 + "\n"),
    "backslashes": filled("\\"),
    "loud words": filled("KEY"),
}
HARMLESS = {
    "source": filled((REPO / "cli.py").read_text("utf-8")),
    "keys that end": filled("-----BEGIN RSA PRIVATE KEY-----\n" + "x" * 64 + "\n-----END RSA PRIVATE KEY-----\n"),
    "certificates": filled("-----BEGIN CERTIFICATE-----\n" + "x" * 64 + "\n-----END CERTIFICATE-----\n"),
    "one key without an end": "-----BEGIN PRIVATE KEY-----\n" + filled("x = 1\n", SIZE - 40),
    "addresses": filled("url: redis://user:secret@host/0\nhttp://example.org/a:b\n"),
    "addresses without a password": filled("url: redis://host:6379/0\n"),
    "minified": filled('{"a":"https://example.org/x","n":12345678},'),
    "hexadecimal": filled("0123456789abcdef"),
    "rows of digits": filled("0" * 79 + "\n"),
    "names": filled("server.auth.port = 8080\n"),
    "blank": filled(" "),
}


class Steps(unittest.TestCase):
    def test_what_could_take_minutes_is_found(self) -> None:
        for secret, texts in ((False, COSTLY), (True, COSTLY), (True, COSTLY_SECRET)):
            for name, text in texts.items():
                with self.subTest(name=name, secret=secret):
                    self.assertGreater(redaction_steps(text, secret), REDACTION_STEPS)

    def test_what_could_not_is_let_through(self) -> None:
        for name, text in (*HARMLESS.items(), *COSTLY_SECRET.items()):
            with self.subTest(name=name):
                self.assertLess(redaction_steps(text, False), REDACTION_STEPS)

    def test_a_small_text_is_never_refused(self) -> None:
        for name, text in {**COSTLY, **COSTLY_SECRET}.items():
            with self.subTest(name=name):
                self.assertLess(redaction_steps(text[-1_000:], False), REDACTION_STEPS)

    def test_finding_it_costs_little_whatever_the_text_holds(self) -> None:
        tricky = (
            "-",
            "-----BEGIN",
            "-----BEGIN" + "A" * 500,
            "PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY----",
            "://",
            "redis://",
            "redis:/",
            "mongodb+srv://a",
            "1" * 99 + " ",
            "1" * 100 + "a",
            "\\" * 19 + "x",
            "A-",
            "a.",
        )
        texts = {**COSTLY, **COSTLY_SECRET, **HARMLESS, **{unit: filled(unit) for unit in tricky}}
        for name, text in texts.items():
            with self.subTest(name=name):
                before = time.process_time()
                redaction_steps(text, True)
                self.assertLess(time.process_time() - before, 2.0)


class Snapshots(unittest.TestCase):
    def test_such_a_file_is_skipped_and_named_and_the_others_are_kept(self) -> None:
        folder = temp_folder(self)
        write_tree(
            folder,
            {
                "a.txt": "x\n",
                "b.pub": COSTLY["beginnings of keys"],
                "config.yaml": COSTLY_SECRET["dotted names"],
                "other.yaml": COSTLY_SECRET["dotted names"],
                "c.txt": "y\n",
            },
        )
        names = ["a.txt", "b.pub", "config.yaml", "other.yaml", "c.txt"]
        calls = [Call("read_file", {"path": name}, '{"content": "1|x"}') for name in names]
        asked: list[str] = []

        def redact(text: str, secret: bool) -> str:
            asked.append(text[:1])
            return text

        taken = take_snapshot(
            calls, Workspace.here(str(folder)), redact=Redactor(redact, True), deadline=time.monotonic() + 60
        )
        self.assertEqual(list(taken.files), ["a.txt", "other.yaml", "c.txt"])
        self.assertEqual(taken.skipped_paths, dict.fromkeys(("b.pub", "config.yaml"), "too slow to redact"))
        self.assertEqual(len(asked), 3)


class IgnoreFiles(unittest.TestCase):
    """An ignore file is a text of others too: a turn's end matches each file against its lines."""

    def ignored(self, rules: str, path: str) -> tuple[bool, float]:
        found = IgnoreRules(lambda name: rules if name == ".gitignore" else None, lambda folder: not folder, True)
        before = time.process_time()
        return found.ignored(path), time.process_time() - before

    def test_stars_that_go_back_on_one_another_cost_little(self) -> None:
        long = "a" * 250
        for rule in (
            "*a" * 12 + "*b",
            "*[a-c]?" * 12 + "*b",
            "{*a,b}" * 12 + "c",
            "{a,*a}*" * 9 + "b",
            "**/a/" * 9 + "b",
            "a/**/" * 9 + "b",
            "*" * 200 + "b",
            "[!b]*" * 9 + "b",
        ):
            for path in (long, "/".join(["a"] * 60), "/".join([long] * 10)):
                with self.subTest(rule=rule[:30], path=path[:9]):
                    self.assertLess(self.ignored(rule + "\n", path)[1], 2.0)

    def test_many_stars_are_still_matched(self) -> None:
        for rule, path, ignored in (
            ("*a*b*c*d*", "xaxbxcxdx", True),
            ("*a*b*c*d*", "xaxbxdxcx", False),
            ("*aa*aa*aa*b", "aaaaaab", True),
            ("*aa*aa*aa*b", "aaaaab", False),
            ("*?*?*?*.py", "abc.py", True),
            ("*?*?*?*.py", "ab.py", False),
            ("/*/a*/b*c*d", "x/aa/bbcd", True),
            ("/*/a*/b*c*d", "x/y/aa/bbcd", False),
        ):
            with self.subTest(rule=rule, path=path):
                self.assertEqual(self.ignored(rule + "\n", path)[0], ignored)

    def test_equal_lines_are_read_once(self) -> None:
        self.assertLess(self.ignored("a.txt\n" * 20_000, "x/b.txt")[1], 0.5)
        self.assertTrue(self.ignored("!a.txt\n" + "b.txt\na.txt\n" * 2, "a.txt")[0])
        self.assertFalse(self.ignored("a.txt\nb.txt\n!a.txt\n", "a.txt")[0])


class Recordings(HookCase):
    def test_a_recording_is_warned_by_name(self) -> None:
        write_tree(self.workspace, {"keys.txt": COSTLY["beginnings of keys"], "a.py": "x\n"})
        self.host.tools["search_files"] = lambda args: '{"files": ["./keys.txt", "./a.py"]}'
        self.host.slash("/cassette record shop")
        turn = self.host.start_turn(QUESTION)
        self.host.call(turn, "search_files", {"pattern": "KEY"})
        self.host.end_turn(turn, "done")
        kept, _ = self.store.read("shop")
        self.assertEqual(list(kept.snapshot.files), ["a.py"])
        (warning,) = kept.warnings
        self.assertIn("could take minutes over it: keys.txt", warning)


if __name__ == "__main__":
    unittest.main()
