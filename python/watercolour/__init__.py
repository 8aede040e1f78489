"""Watercolour: reinforcement learning against a renderer."""

__version__ = "0.1.0"
