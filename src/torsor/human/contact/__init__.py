"""Ground contact: stances of the feet, their force distribution, and the resulting wrenches."""
