"""From a log of a laboratory to measurements: the map of its columns, drives, sampling, filtering, delays, a first look."""
