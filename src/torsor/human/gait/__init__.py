"""Walking: the problem and its settings, strides with curves and energy, comparison with measurements, figures."""
