"""The transcription of a motion problem to a nonlinear program: splines, nodes, kernels and the chain rule."""
