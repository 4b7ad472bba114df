"""The services of tinyshop, one module each."""
