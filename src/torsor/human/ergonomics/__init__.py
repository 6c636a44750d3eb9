"""Ergonomics."""
