"""From a log of a laboratory to measurements: columns, drives, sampling, derivatives, delays, and a first look."""
