"""Contact with the ground: stances of the feet, how they carry the body, and the wrenches that result."""
