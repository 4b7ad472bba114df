"""Carts, prices and stock: what the shop knows without any network."""
