"""Terms of motion problems of a human: forces, feet, strength curves, places, habits; and samples of solved motions."""
