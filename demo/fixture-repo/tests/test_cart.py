"""Sums of carts."""

import unittest

from shop.cart import Cart


class CartTest(unittest.TestCase):
    def test_the_total_counts_every_piece(self) -> None:
        cart = Cart("ada")
        cart.add("teapot")
        cart.add("cup", 2)
        self.assertEqual(cart.total(), 3830)

    def test_nothing_can_be_added_zero_times(self) -> None:
        with self.assertRaises(ValueError):
            Cart("ada").add("cup", 0)


if __name__ == "__main__":
    unittest.main()
