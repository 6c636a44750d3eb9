"""The items of each document."""
