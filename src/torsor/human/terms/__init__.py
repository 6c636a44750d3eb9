"""Terms of human motion problems: forces, feet, places, habits; and samples of solved motions."""
