"""Terms of human motion problems (forces, feet, positions, habits), and samples of solved motions."""
