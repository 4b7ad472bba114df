"""Shows what the shop sells."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from shop.stock import in_stock

CATALOG_PORT = 5000


class CatalogHandler(BaseHTTPRequestHandler):
    """Answers GET /articles.  Open to everyone: nobody has to log in to look."""

    def do_GET(self) -> None:
        if self.path != "/articles":
            self.send_error(404)
            return
        data = json.dumps(in_stock()).encode("utf-8")
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def make_server() -> ThreadingHTTPServer:
    return ThreadingHTTPServer(("127.0.0.1", CATALOG_PORT), CatalogHandler)
