"""Comparison of a predicted walk with recordings of people: recordings cut into strides, and a similarity table."""
