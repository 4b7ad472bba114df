"""Counts what the other services do, as plain text for a scraper."""

from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

METRICS_PORT = 9100

COUNTERS: Counter[str] = Counter(logins=0, logouts=0, orders=0)


class MetricsHandler(BaseHTTPRequestHandler):
    """Answers GET /metrics with one `name value` line per counter."""

    def do_GET(self) -> None:
        lines = [f"tinyshop_{name} {value}\n" for name, value in sorted(COUNTERS.items())]
        data = "".join(lines).encode("utf-8")
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def make_server() -> ThreadingHTTPServer:
    return ThreadingHTTPServer(("127.0.0.1", METRICS_PORT), MetricsHandler)
