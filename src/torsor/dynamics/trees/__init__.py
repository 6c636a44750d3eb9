"""The tree that the recursions run on: bodies in joint frames, simplified trees, and numbers replaced by symbols."""
