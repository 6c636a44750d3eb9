"""The mechanism as the recursions see it: bodies in joint frames, simplified trees, numbers that are symbols."""
