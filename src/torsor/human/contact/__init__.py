"""Ground contact: stances of the feet, force distribution between them, and the resulting wrenches."""
