"""Contact with the ground: which foot stands when, ground reaction, wrenches on the feet."""
