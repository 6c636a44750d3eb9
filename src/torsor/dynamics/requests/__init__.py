"""From the name of an algorithm to its CasADi function: the table of algorithms, requests, tracing, cache keys."""
