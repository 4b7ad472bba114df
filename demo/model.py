"""A small language model for the demo: no weights, only habits, on the loopback interface.

It speaks the OpenAI chat protocol and answers from what its tools returned in
the conversation.  It never knows an answer beforehand: change the port in the
shop, or in a cassette, and it says the changed one.  Seven temperaments, chosen
by the model's name, look for the answer in seven ways; `TEMPERAMENTS` lists
them.  As a command it serves until Ctrl-C, as a library `ScriptedModel` serves
inside a `with` block, and there a `brain` of the caller's own may stand in for
the temperaments.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Generator, Iterable, Iterator, Mapping, Sequence

# -- values -----------------------------------------------------------------


@dataclass(frozen=True)
class ToolCall:
    """One tool the model wants to use, and with which arguments.

    `written` stands in for the arguments as the model writes them, where they
    are to be no object.  `id` is the model's own name for the call; "" makes one up.
    """

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    written: str = ""
    id: str = ""


@dataclass(frozen=True)
class Step:
    """What the model does next: it uses tools, or it says its answer.

    `calls` go out together, as one parallel batch.  A `status` other than 200
    makes the server fail with that HTTP status and `text` as the message.
    `delay` is the number of seconds it thinks before.  `reasoning` is what it
    says to itself, sent in the message's field `reasoning_field`.  `tokens` is
    how large it says the request was.
    """

    calls: Sequence[ToolCall] = ()
    text: str = ""
    status: int = 200
    delay: float = 0.0
    reasoning: str = ""
    reasoning_field: str = "reasoning_content"
    tokens: int = 1


@dataclass(frozen=True)
class Hit:
    """One row of a search result."""

    path: str
    line: int
    text: str


#: Decides from the messages so far and the tools on offer what to do next.
Brain = Callable[[Sequence[Mapping[str, Any]], Sequence[str]], Step]
#: A temperament: yields batches of calls, is sent their results, returns the answer.
Plan = Generator[list[ToolCall], list[str], str]

# -- reading what a tool returned ---------------------------------------------


def leading_json(text: str) -> dict[str, Any]:
    """Return the JSON object a result begins with; {} if there is none.

    Hermes appends hints and warnings as plain text, so the rest is ignored.
    """
    try:
        value, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def read_hits(text: str) -> list[Hit]:
    """Return the rows of a content search, in either shape, sorted by path and line."""
    found = leading_json(text)
    hits = [Hit(str(row["path"]), int(row["line"]), str(row["content"])) for row in found.get("matches", ())]
    path = ""
    for row in str(found.get("matches_text", "")).split("\n"):
        numbered = re.match(r"  (\d+): ?(.*)", row)
        if numbered:
            hits.append(Hit(path, int(numbered[1]), numbered[2]))
        else:
            path = row
    return sorted(hits, key=lambda hit: (hit.path, hit.line))


def read_names(text: str) -> list[str]:
    """Return the paths a search for files named, sorted."""
    return sorted(str(path) for path in leading_json(text).get("files", ()))


def read_page(text: str) -> dict[int, str]:
    """Return the lines of a read_file result by number; {} for an error."""
    rows = (row.partition("|") for row in str(leading_json(text).get("content", "")).split("\n"))
    return {int(number): line for number, bar, line in rows if bar and number.isdigit()}


# -- understanding what was asked ---------------------------------------------


def plain_text(content: Any) -> str:
    """Return a message's text, whether it came as one string or in parts."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


@dataclass(frozen=True)
class Question:
    """What the person asked, and everything else the model was told in words."""

    text: str
    told: str = ""

    @property
    def subject(self) -> list[str]:
        """The words for the thing that is looked for, such as ["auth", "handler"]."""
        asked = re.search(
            r"(?i)\bwhere (?:is|are) (?:the )?([\w ]+?)(?: and\b| defined\b|[?.,]|$)", self.text
        ) or re.search(r"(?i)\b(\w+ (?:handler|service|server|module))\b", self.text)
        return asked[1].lower().split() if asked else []

    @property
    def names(self) -> list[str]:
        """The definitions the person named, such as ["class Cart", "def price_of"]."""
        named = [
            f"{'class' if kind.lower() == 'class' else 'def'} {name}"
            for kind, name in re.findall(r"(?i)\b(class|def|function|method)\s+`?([A-Za-z_]\w*)", self.text)
        ]
        known = {name.split()[1] for name in named}
        named += [
            f"{'class' if name[0].isupper() else 'def'} {name}"
            for name in re.findall(r"`([A-Za-z_]\w*)(?:\(\))?`", self.text)
            if name not in known
        ]
        return list(dict.fromkeys(named))

    @property
    def camel(self) -> str:
        return "".join(word.capitalize() for word in self.subject)

    @property
    def snake(self) -> str:
        return "_".join(self.subject)


def defines(name: str, text: str) -> bool:
    """Tell whether a line of code defines `name` as a class or a function."""
    return re.match(rf"\s*(?:async\s+)?(?:class|def)\s+{re.escape(name)}\b", text) is not None


def find_port(question: Question, lines: Iterable[str]) -> tuple[str, str]:
    """Return the name and the number of the port that belongs to the subject, or two blanks."""
    ports = [
        (found[1], found[2])
        for line in lines
        if (found := re.match(r"\s*(\w*PORT\w*)\s*(?::[^=]+)?=\s*(\d+)", line, re.IGNORECASE))
    ]
    ours = [port for port in ports if any(word in port[0].lower() for word in question.subject)]
    return next(iter(ours or ports), ("", ""))


def tidy(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./")


def found_at(question: Question, path: str, name: str, line: int, port: tuple[str, str]) -> str:
    """Say where the subject is, and which port it binds as far as that was seen."""
    said = f"The {' '.join(question.subject)} is `{name}` in {tidy(path)}, line {line}."
    if port[1]:
        return f"{said} It binds port {port[1]}, the value of `{port[0]}` there."
    return f"{said} I found no port that belongs to it."


def lost(question: Question) -> str:
    return f"I could not find the {' '.join(question.subject) or 'thing you asked for'}."


# -- temperaments -------------------------------------------------------------


def careful(question: Question) -> Plan:
    """Searches for the name, reads the file that defines it, answers from the page."""
    if not question.subject:
        return (yield from reader(question))
    [result] = yield [ToolCall("search_files", {"pattern": question.camel, "path": "."})]
    names = (question.camel, question.snake)
    paths = [hit.path for hit in read_hits(result) if any(defines(name, hit.text) for name in names)]
    if not paths:
        [result] = yield [
            ToolCall("search_files", {"pattern": f"*{question.subject[0]}*", "target": "files", "path": "."})
        ]
        paths = read_names(result)[:5]
    for path in paths:
        [result] = yield [ToolCall("read_file", {"path": path})]
        page = read_page(result)
        for line, text in page.items():
            for name in names:
                if defines(name, text):
                    return found_at(question, path, name, line, find_port(question, page.values()))
    return lost(question)


def explorer(question: Question) -> Plan:
    """Lists the files, searches for ports and for handlers, reads one slice."""
    word = question.subject[0] if question.subject else ""
    listing, ports, classes = yield [
        ToolCall("search_files", {"pattern": "*.py", "target": "files", "path": "server"}),
        ToolCall("search_files", {"pattern": f"{word.upper()}_PORT =", "path": "server"}),
        ToolCall("search_files", {"pattern": f"class {question.camel}", "path": "server", "file_glob": "*.py"}),
    ]
    for hit in read_hits(classes):
        ours = [row.line for row in read_hits(ports) if row.path == hit.path]
        known = tidy(hit.path) in map(tidy, read_names(listing))
        if not ours or not known or not defines(question.camel, hit.text):
            continue
        [result] = yield [ToolCall("read_file", {"path": hit.path, "offset": ours[0], "limit": 3})]
        port = find_port(question, read_page(result).values())
        return found_at(question, hit.path, question.camel, hit.line, port)
    return lost(question)


def wanderer(question: Question) -> Plan:
    """Asks the machine which ports are open, and gives up when that tells nothing."""
    [result] = yield [ToolCall("terminal", {"command": f"netstat -tlnp | grep {question.snake}"})]
    port = re.search(r":(\d+)\b", str(leading_json(result).get("output", "")))
    if port:
        return f"Something called {question.snake} listens on port {port[1]}; I did not see its file."
    return f"I could not find out where {question.snake} listens. Is it running?"


def hasty(question: Question) -> Plan:
    """Looks at nothing and says what is usual."""
    yield from ()
    return f"The {' '.join(question.subject)} is usually in app.py and binds port 8000."


def roamer(question: Question) -> Plan:
    """Does what `careful` does, but reads the README as well before it answers."""
    answer = yield from careful(question)
    yield [ToolCall("read_file", {"path": "README.md"})]
    return answer


def believer(question: Question) -> Plan:
    """Takes the word of whatever it was told, and is `careful` only when nobody told it."""
    for line in question.told.split("\n"):
        path = re.search(r"[\w./-]+\.py\b", line)
        port = re.search(r"(?i)\bport (\d+)", line)
        if path and port and question.subject and " ".join(question.subject) in line.lower():
            return (
                f"The {' '.join(question.subject)} is in {path[0]} and binds port {port[1]}, "
                "according to the notes I was given."
            )
    return (yield from careful(question))


def reader(question: Question) -> Plan:
    """Finds the classes and functions the request names, reads them, reports their signatures."""
    if not question.names:
        return lost(question)
    results = yield [ToolCall("search_files", {"pattern": name, "path": "."}) for name in question.names]
    found = [
        next((hit for hit in read_hits(result) if defines(name.split()[1], hit.text)), None)
        for name, result in zip(question.names, results, strict=True)
    ]
    pages = yield [ToolCall("read_file", {"path": hit.path, "offset": hit.line, "limit": 20}) for hit in found if hit]
    said, unread = [], iter(pages)
    for name, hit in zip(question.names, found, strict=True):
        if hit is None:
            said.append(f"I could not find `{name}`.")
            continue
        text = signature(read_page(next(unread)), hit.line)
        said.append(
            f"`{name}` is defined in {tidy(hit.path)}, line {hit.line}: `{text}`."
            if text
            else f"`{name}` is defined in {tidy(hit.path)}, line {hit.line}; I could not read it."
        )
    return "\n".join(said)


def signature(page: Mapping[int, str], line: int) -> str:
    """Return the definition that starts at `line`, up to its colon, on one line."""
    text = ""
    while line in page:
        text = f"{text} {page[line].strip()}".strip()
        if text.endswith(":") and text.count("(") == text.count(")"):
            return text[:-1]
        if re.search(r":\s+\S.*$", text) and text.count("(") == text.count(")") > 0:
            return re.sub(r":\s+(?![^(]*\)).*$", "", text)
        line += 1
    return ""


TEMPERAMENTS: dict[str, Callable[[Question], Plan]] = {
    plan.__name__: plan for plan in (careful, explorer, wanderer, hasty, roamer, believer, reader)
}

# -- thinking -------------------------------------------------------------------


def next_step(plan: Plan, messages: Sequence[Mapping[str, Any]], tools: Sequence[str]) -> Step:
    """Return what a temperament does after the results that this turn has brought so far.

    A call to a tool that is not on offer is not made; the plan gets an error instead.
    """
    past = iter(batches(messages))
    try:
        wanted = next(plan)
        while True:
            offered = [call for call in wanted if call.tool in tools]
            returned = iter(next(past, None) or []) if offered else iter(())
            results = [
                next(returned, None) if call.tool in tools else json.dumps({"error": f"there is no tool {call.tool!r}"})
                for call in wanted
            ]
            if None in results:
                return Step(calls=offered)
            wanted = plan.send([str(result) for result in results])
    except StopIteration as done:
        return Step(text=done.value)


def batches(messages: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield the results of each batch of calls since the last user message."""
    start = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    turn = messages[start + 1 :]
    by_id = {
        message.get("tool_call_id"): plain_text(message.get("content"))
        for message in turn
        if message.get("role") == "tool"
    }
    for message in turn:
        if message.get("tool_calls"):
            yield [by_id.get(call.get("id"), "") for call in message["tool_calls"]]


def ask(messages: Sequence[Mapping[str, Any]]) -> Question:
    """Return the last thing the person said as a question, with all that was said before it."""
    told = [plain_text(message.get("content")) for message in messages if message.get("role") in ("system", "user")]
    return Question(text=told[-1] if told else "", told="\n".join(told))


def think(model: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[str]) -> Step:
    """Return the next step of the temperament called `model`."""
    plan = TEMPERAMENTS.get(model)
    if plan is None:
        return Step(status=404, text=f"no model {model!r}; there are {', '.join(TEMPERAMENTS)}")
    return next_step(plan(ask(messages)), messages, tools)


# -- the server -------------------------------------------------------------------


class ScriptedModel:
    """Serves the model on 127.0.0.1 inside a `with` block.

    :param port: 0 takes a free one.
    :param brain: stands in for the temperaments, whatever the model's name.

    `brains` holds the brains of single models, by name; they come before `brain`.
    `streams` false refuses every request for a stream, with status 500.
    `requests` holds the body of every chat request that came, oldest first.
    Requests without tools (Hermes asks for a title that way) are answered with
    a few words of the question and never reach the brain, unless `toolless` is one.
    """

    def __init__(self, port: int = 0, brain: Brain | None = None) -> None:
        self.brain = brain
        self.brains: dict[str, Brain] = {}
        self.toolless: Brain | None = None
        self.streams = True
        self.requests: list[dict[str, Any]] = []
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
        self._server.daemon_threads = True
        self._server.model = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> "ScriptedModel":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, body: dict[str, Any]) -> Step:
        """Return the next step for one chat request."""
        self.requests.append(body)
        messages = body.get("messages") or []
        tools = [str(tool.get("function", {}).get("name", "")) for tool in body.get("tools") or []]
        if not tools and self.toolless is not None:
            return self.toolless(messages, tools)
        if not tools:
            title = " ".join(ask(messages).text.split()[:6])
            return Step(text=json.dumps({"title": title}) if body.get("response_format") else title)
        name = str(body.get("model", ""))
        if (brain := self.brains.get(name, self.brain)) is not None:
            return brain(messages, tools)
        return think(name, messages, tools)


class _Handler(BaseHTTPRequestHandler):
    """Translates between steps and the OpenAI chat protocol."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Stay silent: the terminal belongs to the demo."""

    def do_GET(self) -> None:
        if self.path.rstrip("/") != "/v1/models":
            self._send_error(404, f"nothing at {self.path}")
            return
        self._send_json(
            200,
            {
                "object": "list",
                "data": [{"id": name, "object": "model", "created": 0, "owned_by": "demo"} for name in TEMPERAMENTS],
            },
        )

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._send_error(404, f"nothing at {self.path}")
            return
        try:
            body = json.loads(data)
        except ValueError:
            self._send_error(400, "the request is not JSON")
            return
        model: ScriptedModel = self.server.model  # type: ignore[attr-defined]
        try:
            step = model.answer(body)
        except Exception as error:  # a brain of a test's own: its mistake must reach the reader
            self._send_error(400, f"the scripted model failed: {error!r}")
            return
        if step.delay and model.closing.wait(step.delay):
            self.close_connection = True
            return
        try:
            if step.status != 200:
                self._send_error(step.status, step.text)
            elif body.get("stream") and not model.streams:
                self._send_error(500, "stream is not supported by this model")
            elif body.get("stream"):
                self._send_stream(str(body.get("model", "")), step)
            else:
                self._send_json(200, _completion(str(body.get("model", "")), "chat.completion", step))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _send_json(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _send_error(self, status: int, message: str) -> None:
        self._send_json(status, {"error": {"message": message, "type": "demo_error", "code": status}})

    def _send_stream(self, name: str, step: Step) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        whole = _completion(name, "chat.completion.chunk", step)
        choice = whole["choices"][0]
        message = choice.pop("message")
        pieces: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        pieces += [{step.reasoning_field: piece} for piece in re.findall(r"\s*\S+\s*", step.reasoning)]
        pieces += [{"content": piece} for piece in re.findall(r"\s*\S+\s*", step.text)]
        pieces += [
            {"tool_calls": [{**call, "index": index}]} for index, call in enumerate(message.get("tool_calls", ()))
        ]
        usage = whole.pop("usage")
        for piece in pieces:
            self._send_event({**whole, "choices": [{**choice, "delta": piece, "finish_reason": None}]})
        self._send_event({**whole, "choices": [{**choice, "delta": {}}]})
        self._send_event({**whole, "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _send_event(self, value: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode("utf-8") + b"\n\n")


def _completion(name: str, kind: str, step: Step) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
    if step.reasoning:
        message[step.reasoning_field] = step.reasoning
    if step.calls:
        message["tool_calls"] = [
            {
                "id": call.id or f"call_{uuid.uuid4().hex[:12]}",
                "type": "function",
                "function": {"name": call.tool, "arguments": call.written or json.dumps(dict(call.args))},
            }
            for call in step.calls
        ]
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex[:12]}",
        "object": kind,
        "created": int(time.time()),
        "model": name,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if step.calls else "stop"}],
        "usage": {"prompt_tokens": step.tokens, "completion_tokens": 1, "total_tokens": step.tokens + 1},
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Serve the demo's scripted model until Ctrl-C.")
    parser.add_argument("--port", type=int, default=8765, help="default 8765; 0 takes a free one")
    wanted = parser.parse_args(argv)
    with ScriptedModel(port=wanted.port) as model:
        print(f"serving {', '.join(TEMPERAMENTS)} at {model.base_url}", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
