"""Published forms of the Newton-Euler recursion, each a page in its own letters, independent of torsor."""
