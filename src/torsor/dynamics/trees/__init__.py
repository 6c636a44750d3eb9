"""Trees for the recursions: bodies in joint frames, simplified trees, and numbers replaced by symbols."""
