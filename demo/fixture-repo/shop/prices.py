"""What an article costs, in cents."""

PRICES = {"teapot": 2450, "cup": 690, "saucer": 390, "tray": 1800}


def price_of(article: str) -> int:
    """Return the price in cents; raise KeyError for an unknown article."""
    return PRICES[article]
