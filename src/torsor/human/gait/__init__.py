"""Walking: the problem, the stride, energy, reference curves, reports and figures."""
