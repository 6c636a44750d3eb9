"""Ground contact: stances of the feet, how they carry the body, and the resulting wrenches."""
