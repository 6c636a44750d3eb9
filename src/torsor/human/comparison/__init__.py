"""Comparison of a predicted walk with people: recordings cut into strides, and a table of similarity."""
