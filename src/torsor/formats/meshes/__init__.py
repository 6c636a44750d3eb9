"""Triangle surfaces of simple shapes and of mesh files with colours, for viewers and collision shapes."""
