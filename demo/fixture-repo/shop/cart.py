"""What a customer wants to buy."""

from dataclasses import dataclass, field

from shop.prices import price_of


@dataclass
class Cart:
    """Articles and how many of each."""

    customer: str
    articles: dict[str, int] = field(default_factory=dict)

    def add(self, article: str, count: int = 1) -> None:
        if count < 1:
            raise ValueError(f"cannot add {count} of {article!r}: at least one is needed")
        self.articles[article] = self.articles.get(article, 0) + count

    def total(self) -> int:
        """Return the sum of the cart in cents."""
        return sum(price_of(article) * count for article, count in self.articles.items())
