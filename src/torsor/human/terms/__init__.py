"""Terms of motion problems of a human: forces, feet, places, habits; and samples of solved motions."""
