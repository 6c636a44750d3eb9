"""A predicted walk beside people: recordings cut into strides, in the same signs and units, and a table of likeness."""
