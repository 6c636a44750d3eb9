"""Terms of human motion problems (forces, feet, positions and habits), and samples of solved motions."""
