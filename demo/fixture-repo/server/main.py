"""Starts every service of the shop in a thread of its own."""

import threading

from server import auth, catalog, metrics
from server.auth import AuthHandler
from server.catalog import CatalogHandler
from server.metrics import MetricsHandler

#: What runs where, for the line that is printed at the start.
SERVICES = {
    AuthHandler: auth.AUTH_PORT,
    CatalogHandler: catalog.CATALOG_PORT,
    MetricsHandler: metrics.METRICS_PORT,
}


def main() -> None:
    for handler, port in SERVICES.items():
        print(f"{handler.__name__} listens on 127.0.0.1:{port}")
    threads = [threading.Thread(target=module.make_server().serve_forever)
               for module in (auth, catalog, metrics)]
    for thread in threads:
        thread.start()


if __name__ == "__main__":
    main()
