"""Logs customers in and out: the login service of the shop."""

import hashlib
import hmac
import json
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

AUTH_PORT = 8080
SESSION_SECONDS = 1800

#: Customer name to the digest of the password, for the demo customers.
CUSTOMERS = {"ada": hashlib.sha256(b"difference engine").hexdigest()}

#: Open sessions: token to customer name.
SESSIONS: dict[str, str] = {}


def log_in(customer: str, password: str) -> str | None:
    """Return a fresh session token, or None if the password is wrong."""
    digest = hashlib.sha256(password.encode("utf-8")).hexdigest()
    if not hmac.compare_digest(digest, CUSTOMERS.get(customer, "")):
        return None
    token = secrets.token_urlsafe(16)
    SESSIONS[token] = customer
    return token


class AuthHandler(BaseHTTPRequestHandler):
    """Answers POST /login and POST /logout."""

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        form = json.loads(self.rfile.read(size) or b"{}")
        if self.path == "/login":
            token = log_in(form.get("customer", ""), form.get("password", ""))
            self.reply(200 if token else 403, {"token": token})
        elif self.path == "/logout":
            SESSIONS.pop(form.get("token", ""), None)
            self.reply(200, {})
        else:
            self.reply(404, {})

    def reply(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def make_server() -> ThreadingHTTPServer:
    return ThreadingHTTPServer(("127.0.0.1", AUTH_PORT), AuthHandler)
