"""Stands where Hermes 0.23 has its attaching client: that it can be found is all that it is for."""
