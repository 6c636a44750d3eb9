"""A robot as a model of other systems: one package for each of them."""
