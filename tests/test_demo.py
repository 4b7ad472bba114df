"""The demo: its model answers from what it reads, its shop keeps its secret, its walkthrough holds."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import unittest
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Any, Callable, Mapping

from tests.lanes.venvs import lane_folder, lanes
from tests.support import REPO, load_demo, temp_folder

model = load_demo("model")
scratch = load_demo("scratch")
walkthrough = load_demo("walkthrough")

FIXTURE = REPO / "demo" / "fixture-repo"
SKILL = REPO / "demo" / "skills" / "tinyshop-layout" / "SKILL.md"
QUESTION = walkthrough.QUESTION
MISS = '{"status": "unavailable", "message": "cassette miss"}'

Tools = Mapping[str, Callable[[Mapping[str, Any]], str]]


class Shop:
    """The tiny shop in memory, with the two tools that look at it."""

    def __init__(self) -> None:
        self.files = {
            path.relative_to(FIXTURE).as_posix(): path.read_text(encoding="utf-8")
            for path in FIXTURE.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }

    @property
    def tools(self) -> Tools:
        return {"search_files": self.search, "read_file": self.read, "terminal": lambda args: MISS}

    def search(self, args: Mapping[str, Any]) -> str:
        inside = {
            path: text
            for path, text in self.files.items()
            if args["path"] == "." or path.startswith(args["path"] + "/")
        }
        if args.get("target") == "files":
            found = [path for path in inside if fnmatch.fnmatch(path.rpartition("/")[2], args["pattern"])]
            return json.dumps({"total_count": len(found), "files": found})
        rows = [
            {"path": path, "line": number, "content": line}
            for path, text in inside.items()
            for number, line in enumerate(text.split("\n"), 1)
            if re.search(args["pattern"], line)
        ]
        if len(rows) < 5:
            return json.dumps({"total_count": len(rows), "matches": rows})
        text, last = [], ""
        for row in rows:
            text += [row["path"]] * (row["path"] != last) + [f"  {row['line']}: {row['content']}"]
            last = row["path"]
        return (
            json.dumps({"total_count": len(rows), "matches_format": "path-grouped", "matches_text": "\n".join(text)})
            + "\n\n[Hint: Results truncated.]"
        )

    def read(self, args: Mapping[str, Any]) -> str:
        if args["path"] not in self.files:
            return json.dumps({"error": f"File not found: {args['path']}"})
        lines = self.files[args["path"]].split("\n")
        first = int(args.get("offset", 1))
        shown = lines[first - 1 : first - 1 + int(args.get("limit", 500))]
        return json.dumps(
            {"content": "\n".join(f"{first + n}|{line}" for n, line in enumerate(shown)), "total_lines": len(lines)}
        )


def converse(name: str, tools: Tools, question: str = QUESTION, told: str = "") -> tuple[str, list[Any]]:
    """Let a temperament work with these tools; return its answer and its calls."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": told}, {"role": "user", "content": question}]
    calls: list[Any] = []
    for _ in range(10):
        step = model.think(name, messages, list(tools))
        if not step.calls:
            return step.text, calls
        ids = [f"call_{len(calls) + number}" for number in range(len(step.calls))]
        messages.append({"role": "assistant", "tool_calls": [{"id": one} for one in ids]})
        messages += [
            {"role": "tool", "tool_call_id": one, "content": tools[call.tool](call.args)}
            for one, call in zip(ids, step.calls, strict=True)
        ]
        calls += step.calls
    raise AssertionError(f"{name} does not come to an end: {calls}")


class TemperamentTest(unittest.TestCase):
    def setUp(self) -> None:
        self.shop = Shop()

    def test_careful_finds_the_file_and_the_port(self) -> None:
        answer, calls = converse("careful", self.shop.tools)
        self.assertIn("server/auth.py", answer)
        self.assertIn("8080", answer)
        self.assertEqual([call.tool for call in calls], ["search_files", "read_file"])

    def test_careful_says_what_it_read_and_not_what_is_usual(self) -> None:
        self.shop.files["server/login.py"] = self.shop.files.pop("server/auth.py").replace("8080", "9090")
        answer, _ = converse("careful", self.shop.tools)
        self.assertIn("server/login.py", answer)
        self.assertIn("9090", answer)
        self.assertNotIn("8080", answer)

    def test_careful_looks_at_file_names_where_the_search_finds_nothing(self) -> None:
        def search(args: Mapping[str, Any]) -> str:
            return self.shop.search(args) if args.get("target") == "files" else '{"total_count": 0}'

        answer, _ = converse("careful", {**self.shop.tools, "search_files": search})
        self.assertIn("server/auth.py", answer)

    def test_careful_is_at_a_loss_when_every_call_is_a_miss(self) -> None:
        answer, _ = converse("careful", {name: lambda args: MISS for name in self.shop.tools})
        self.assertIn("could not find", answer)

    def test_explorer_reaches_the_same_answer_by_calls_that_careful_never_made(self) -> None:
        answer, calls = converse("explorer", self.shop.tools)
        _, recorded = converse("careful", self.shop.tools)
        self.assertIn("server/auth.py", answer)
        self.assertIn("8080", answer)
        self.assertFalse([call for call in calls if call in recorded])
        self.assertIn(3, [call.args.get("limit") for call in calls], "it reads a slice")

    def test_explorer_needs_no_file_that_the_search_of_careful_did_not_name(self) -> None:
        named = {hit.path for hit in model.read_hits(self.shop.search({"pattern": "AuthHandler", "path": "."}))}
        self.shop.files = {path: text for path, text in self.shop.files.items() if path in named}
        self.assertIn("8080", converse("explorer", self.shop.tools)[0])

    def test_wanderer_asks_the_machine_and_gives_up(self) -> None:
        answer, calls = converse("wanderer", self.shop.tools)
        self.assertEqual(calls, [model.ToolCall("terminal", {"command": "netstat -tlnp | grep auth_handler"})])
        self.assertNotIn("auth.py", answer)
        self.assertNotIn("8080", answer)

    def test_wanderer_would_tell_a_port_that_the_machine_shows(self) -> None:
        shown = json.dumps({"output": "tcp 127.0.0.1:7777 LISTEN auth_handler", "exit_code": 0})
        self.assertIn("7777", converse("wanderer", {"terminal": lambda args: shown})[0])

    def test_hasty_looks_at_nothing(self) -> None:
        answer, calls = converse("hasty", self.shop.tools)
        self.assertEqual(calls, [])
        self.assertNotIn("8080", answer)

    def test_roamer_answers_right_but_reads_what_careful_never_saw(self) -> None:
        answer, calls = converse("roamer", self.shop.tools)
        self.assertEqual(answer, converse("careful", self.shop.tools)[0])
        self.assertEqual(calls[-1], model.ToolCall("read_file", {"path": "README.md"}))
        named = self.shop.search({"pattern": "AuthHandler", "path": "."})
        self.assertNotIn("README.md", named)

    def test_believer_believes_the_skill_and_verifies_nothing(self) -> None:
        answer, calls = converse("believer", self.shop.tools, told=SKILL.read_text(encoding="utf-8"))
        self.assertIn("server/catalog.py", answer)
        self.assertIn("5000", answer)
        self.assertEqual(calls, [])

    def test_believer_without_a_skill_is_careful(self) -> None:
        self.assertEqual(converse("believer", self.shop.tools), converse("careful", self.shop.tools))

    def test_reader_reports_signatures_it_has_read(self) -> None:
        self.shop.files["shop/wide.py"] = (
            "import x\n\nasync def wide(\n    one: dict[str, int],\n    two: str = ':',\n) -> None:\n    pass\n"
        )
        answer, calls = converse(
            "reader", self.shop.tools, "Where are class Cart, `log_in`, `wide` and def nothing_like_it?"
        )
        self.assertEqual(
            answer.split("\n"),
            [
                "`class Cart` is defined in shop/cart.py, line 9: `class Cart`.",
                "I could not find `def nothing_like_it`.",
                "`def log_in` is defined in server/auth.py, line 19: "
                "`def log_in(customer: str, password: str) -> str | None`.",
                "`def wide` is defined in shop/wide.py, line 3: "
                "`async def wide( one: dict[str, int], two: str = ':', ) -> None`.",
            ],
        )
        self.assertEqual([call.tool for call in calls], ["search_files"] * 4 + ["read_file"] * 3)

    def test_no_temperament_calls_a_tool_that_is_not_on_offer(self) -> None:
        for name in model.TEMPERAMENTS:
            with self.subTest(name):
                self.assertEqual(converse(name, {"todo": lambda args: "{}"})[1], [])

    def test_only_results_of_this_turn_count(self) -> None:
        earlier = [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "tool_calls": [{"id": "a"}]},
            {"role": "tool", "tool_call_id": "a", "content": MISS},
            {"role": "assistant", "content": "?"},
            {"role": "user", "content": QUESTION},
        ]
        self.assertEqual(model.think("careful", earlier, ["search_files"]).calls[0].tool, "search_files")


class ReadingTest(unittest.TestCase):
    def test_both_shapes_of_a_search_read_alike(self) -> None:
        rows = [
            {"path": "b.py", "line": 2, "content": "x: 1"},
            {"path": "a.py", "line": 10, "content": ""},
            {"path": "a.py", "line": 9, "content": "  y"},
        ]
        grouped = "b.py\n  2: x: 1\na.py\n  9:   y\n  10: "
        self.assertEqual(
            model.read_hits(json.dumps({"matches": rows})),
            model.read_hits(json.dumps({"matches_text": grouped}) + "\n\n[Hint: more]"),
        )

    def test_a_page_keeps_bars_and_blank_lines(self) -> None:
        self.assertEqual(model.read_page(json.dumps({"content": "7|a|b\n8|\n9|"})), {7: "a|b", 8: "", 9: ""})

    def test_errors_read_as_nothing(self) -> None:
        for text in ('{"error": "File not found: x"}', MISS, "Error: no", "", "[1]"):
            with self.subTest(text):
                self.assertEqual((model.read_hits(text), model.read_page(text), model.read_names(text)), ([], {}, []))


class ServerTest(unittest.TestCase):
    def setUp(self) -> None:
        self.model = model.ScriptedModel()
        self.model.__enter__()
        self.addCleanup(self.model.__exit__)

    def post(self, body: Mapping[str, Any]) -> str:
        request = urllib.request.Request(f"{self.model.base_url}/chat/completions", json.dumps(body).encode())
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as reply:
            return reply.read().decode("utf-8")

    def body(self, **more: Any) -> dict[str, Any]:
        tools = [{"type": "function", "function": {"name": "search_files"}}]
        return {"model": "careful", "messages": [{"role": "user", "content": QUESTION}], "tools": tools, **more}

    def test_it_answers_in_one_piece(self) -> None:
        choice = json.loads(self.post(self.body()))["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        call = choice["message"]["tool_calls"][0]["function"]
        self.assertEqual((call["name"], json.loads(call["arguments"])["pattern"]), ("search_files", "AuthHandler"))
        self.assertEqual(self.model.requests[0]["model"], "careful")

    def test_it_streams_the_same(self) -> None:
        events = self.post(self.body(stream=True, model="hasty")).strip().split("\n\n")
        self.assertEqual(events[-1], "data: [DONE]")
        chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
        self.assertEqual(
            "".join(delta.get("content", "") for delta in deltas),
            json.loads(self.post(self.body(model="hasty")))["choices"][0]["message"]["content"],
        )

    def test_parallel_calls_stream_with_their_index(self) -> None:
        self.model.brain = lambda messages, tools: model.Step(
            calls=[model.ToolCall("search_files"), model.ToolCall("search_files", {"pattern": "x"})]
        )
        events = [json.loads(line[6:]) for line in self.post(self.body(stream=True)).split("\n\n") if line[6:7] == "{"]
        calls = [
            call for event in events for choice in event["choices"] for call in choice["delta"].get("tool_calls", ())
        ]
        self.assertEqual([call["index"] for call in calls], [0, 1])
        self.assertEqual(len({call["id"] for call in calls}), 2)

    def test_a_brain_may_fail_with_a_status(self) -> None:
        self.model.brain = lambda messages, tools: model.Step(status=503, text="too busy")
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.post(self.body())
        self.assertEqual(caught.exception.code, 503)
        self.assertIn("too busy", caught.exception.read().decode())
        caught.exception.close()

    def test_an_unknown_model_is_refused_with_the_known_ones(self) -> None:
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.post(self.body(model="gpt"))
        self.assertIn("careful", caught.exception.read().decode())
        caught.exception.close()

    def test_a_request_for_a_title_never_reaches_the_brain(self) -> None:
        self.model.brain = lambda messages, tools: model.Step(status=500)
        text = self.post(
            {
                "model": "x",
                "messages": [{"role": "user", "content": QUESTION}],
                "response_format": {"type": "json_schema"},
            }
        )
        content = json.loads(text)["choices"][0]["message"]["content"]
        self.assertTrue(QUESTION.startswith(json.loads(content)["title"]))

    def test_a_delay_ends_with_the_server(self) -> None:
        self.model.brain = lambda messages, tools: model.Step(text="late", delay=600)
        self.model.closing.set()
        with self.assertRaises(OSError):
            self.post(self.body())


class FixtureTest(unittest.TestCase):
    def test_the_port_stands_in_one_place_only(self) -> None:
        told = [(path, line) for path, text in Shop().files.items() for line in text.split("\n") if "8080" in line]
        self.assertEqual(told, [("server/auth.py", "AUTH_PORT = 8080")])

    def test_there_are_decoys(self) -> None:
        files = Shop().files
        self.assertIn("CATALOG_PORT = 5000", files["server/catalog.py"])
        self.assertIn("METRICS_PORT = 9100", files["server/metrics.py"])
        self.assertIn("7070", files["docs/legacy-auth.md"])
        self.assertTrue(10 <= len(files) <= 20)

    def test_the_skill_is_wrong_about_both_pins(self) -> None:
        text = SKILL.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("---\nname: tinyshop-layout\ndescription: "))
        self.assertIn("`server/catalog.py` and binds port 5000", text)
        self.assertNotIn("8080", text)

    def test_the_shop_passes_its_own_tests(self) -> None:
        done = subprocess.run(
            [sys.executable, "-B", "-m", "unittest", "discover", "-s", "tests"],
            cwd=FIXTURE,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)


class WalkthroughTextTest(unittest.TestCase):
    def test_commands_are_shown_as_the_platform_types_them(self) -> None:
        words = ["hermes", "--query", "what's $HOME?", r"C:\a b"]
        self.assertEqual(walkthrough.typed(words, windows=True), r"hermes --query 'what''s $HOME?' 'C:\a b'")
        self.assertEqual(walkthrough.typed(words, windows=False), """hermes --query 'what'"'"'s $HOME?' 'C:\\a b'""")

    def test_a_verdict_counts_only_if_text_and_status_agree(self) -> None:
        self.assertEqual(walkthrough.verdict(0, "x\nresult PASS\npath 2 calls: 1 hit, 0 miss;"), "PASS")
        self.assertEqual(walkthrough.verdict(1, "result FAIL (also)\npath 1 call: 0 hit, 1 miss; x"), "FAIL, 1 miss")
        self.assertEqual(walkthrough.verdict(1, "result PASS\n"), "PASS, exit status 1")
        self.assertEqual(walkthrough.verdict(2, "no such cassette"), "no verdict, exit status 2")

    def test_tampering_leaves_pins_and_answer_alone(self) -> None:
        cassette = {
            "pins": ["8080"],
            "answer": "8080",
            "calls": [{"tool": "t", "args": {"q": "8080"}, "result": "8080"}],
            "snapshot": {"files": {"a": {"text": "port 8080"}}},
        }
        changed = walkthrough.tamper(cassette, "8080", "9090")
        self.assertEqual((changed["pins"], changed["answer"]), (["8080"], "8080"))
        self.assertEqual(changed["calls"][0], {"tool": "t", "args": {"q": "8080"}, "result": "9090"})
        self.assertEqual(changed["snapshot"]["files"]["a"]["text"], "port 9090")

    def test_a_broken_promise_stands_out(self) -> None:
        checks = [
            walkthrough.Check("one", "PASS", "PASS"),
            walkthrough.Check("two", "FAIL", "PASS"),
            walkthrough.Check("three", walkthrough.ANY_VERDICT, "FAIL, 2 misses"),
            walkthrough.Check("four", walkthrough.ANY_VERDICT, "INVALID"),
        ]
        marked = [line.split()[0] for line in walkthrough.table(checks).split("\n") if "NOT AS PROMISED" in line]
        self.assertEqual(marked, ["two", "four"])

    def test_own_models_need_both_options(self) -> None:
        with self.assertRaises(SystemExit) as caught, open(os.devnull, "w") as nowhere:
            stderr, sys.stderr = sys.stderr, nowhere
            try:
                walkthrough.parse(["--model", "x"])
            finally:
                sys.stderr = stderr
        self.assertEqual(caught.exception.code, 2)


class ScratchTest(unittest.TestCase):
    def test_further_lines_go_on_with_the_plugins_and_a_section_stands_once(self) -> None:
        home = temp_folder(self)
        for more in (
            "",
            "  hook_callback_timeout: 1\n",
            "memory:\n  x: 1\n",
            "agent:\n  max_turns: 2\n",
            "a: 1\nagent:\n",
        ):
            with self.subTest(more):
                scratch.write_config(home, "http://127.0.0.1:1/v1", "careful", more=more)
                lines = (home / "config.yaml").read_text("utf-8").splitlines()
                after = lines[lines.index("plugins:") :]
                self.assertEqual(after[1], "  enabled: [session-cassettes]")
                self.assertEqual(after[2], (more.splitlines() or ["agent:"])[0])
                self.assertEqual(lines.count("agent:"), 1)
                self.assertEqual(lines[lines.index("agent:") + 1], "  environment_probe: false")
                for line in more.splitlines():
                    self.assertIn(line, lines)

    def test_a_half_built_environment_is_built_again(self) -> None:
        if scratch.find_python() is None:
            self.skipTest("no Python that Hermes runs on")
        folder = temp_folder(self) / "environment"
        wheel = toy_wheel(folder.parent)
        (folder / "leftover").mkdir(parents=True)
        told: list[str] = []
        self.assertFalse(scratch.is_ready(folder, str(wheel)))
        scratch.build(folder, str(wheel), told.append)
        self.assertTrue(scratch.is_ready(folder, str(wheel)))
        self.assertFalse((folder / "leftover").exists())
        self.assertTrue(scratch.hermes_in(folder).exists())
        count = len(told)
        scratch.build(folder, str(wheel), told.append)
        self.assertEqual(len(told), count, "a finished one is used as it is")

    def test_a_failing_install_says_what_pip_said(self) -> None:
        if scratch.find_python() is None:
            self.skipTest("no Python that Hermes runs on")
        missing = str(temp_folder(self) / "missing-1.0-py3-none-any.whl")
        folder = temp_folder(self) / "environment"
        with self.assertRaises(scratch.BuildError) as caught:
            scratch.build(folder, missing, lambda text: None)
        self.assertIn("missing-1.0", str(caught.exception))
        self.assertFalse(scratch.is_ready(folder, missing))

    def test_the_environment_of_a_scratch_home_steers_to_nothing_else(self) -> None:
        env = scratch.clean_environment(
            Path("/home/x"),
            {
                "PATH": "p",
                "HERMES_YOLO_MODE": "1",
                "hermes_profile": "me",
                "OPENAI_API_KEY": "k",
                "SESSION_CASSETTES_RUN": "x",
                "NO_PROXY": "corp",
            },
        )
        self.assertEqual(env["HERMES_HOME"], str(Path("/home/x")))
        self.assertEqual(env["NO_PROXY"], "corp,127.0.0.1,localhost")
        self.assertFalse({"HERMES_YOLO_MODE", "hermes_profile", "OPENAI_API_KEY", "SESSION_CASSETTES_RUN"} & set(env))


def toy_wheel(folder: Path) -> Path:
    """Make a wheel that brings a `hermes` command and nothing else."""
    path = folder / "toy-1.0-py3-none-any.whl"
    files = {
        "toy.py": "def main():\n    print('Hermes Agent v0.19.0')\n",
        "toy-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n",
        "toy-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "toy-1.0.dist-info/entry_points.txt": "[console_scripts]\nhermes = toy:main\n",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
        wheel.writestr("toy-1.0.dist-info/RECORD", "".join(f"{name},,\n" for name in files))
    return path


class WalkthroughInHermesTest(unittest.TestCase):
    """The walkthrough itself, with the real Hermes of the first lane."""

    def setUp(self) -> None:
        folder = lane_folder(lanes()[0])
        self.scratch = temp_folder(self)
        self.command = [sys.executable, str(REPO / "demo" / "walkthrough.py")]
        self.environment = {
            **os.environ,
            "TMPDIR": str(self.scratch),
            "TEMP": str(self.scratch),
            "TMP": str(self.scratch),
            "PYTHONIOENCODING": "utf-8",
            "PATH": os.pathsep.join([str(scratch.bin_folder(folder)), os.environ.get("PATH", "")]),
        }
        if sys.version_info < (3, 11):
            self.command[0] = str(scratch.python_in(folder))

    def test_every_promise_is_kept_and_nothing_is_left(self) -> None:
        done = subprocess.run(
            self.command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=900,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"all \d+ promises were kept")
        self.assertIn("found on PATH", done.stdout)
        self.assertEqual([path.name for path in self.scratch.iterdir()], [])

    @unittest.skipIf(os.name == "nt", "Ctrl-C cannot be sent to a child there without reaching this process")
    def test_ctrl_c_cleans_up(self) -> None:
        with subprocess.Popen(
            self.command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as child:
            assert child.stdout is not None
            for line in child.stdout:
                if "hermes cassette record" in line:
                    break
            os.killpg(child.pid, signal.SIGINT)
            rest = child.stdout.read()
            self.assertEqual(child.wait(60), 130, rest)
        self.assertEqual([path.name for path in self.scratch.iterdir()], [])


if __name__ == "__main__":
    unittest.main()
