"""Conversion of laboratory logs to measurements: columns, drives, sampling, derivatives, delays and quality checks."""
