"""Comparison of predicted and recorded walks: division of recordings into strides, and a similarity table."""
