"""From laboratory logs to measurements: columns, drives, sampling, derivatives, delays and quality checks."""
