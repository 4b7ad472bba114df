"""What lies on the shelf."""

from shop.prices import PRICES

STOCK = {"teapot": 4, "cup": 24, "saucer": 24, "tray": 0}


def in_stock() -> dict[str, int]:
    """Return the articles that can be bought now, with their price in cents."""
    return {article: PRICES[article] for article, count in STOCK.items() if count}
