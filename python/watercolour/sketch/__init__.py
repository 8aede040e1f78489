"""Sketches: how they are asked for, extracted, checked and made."""
