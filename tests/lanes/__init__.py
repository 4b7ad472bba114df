"""Tests that drive a real Hermes: one virtual environment, and one lane, per version."""
