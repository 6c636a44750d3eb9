"""Terms of motion problems: objectives, constraints and boundary conditions."""
