"""Results of motion problems: trajectories, forces, reports, files and figures."""
