"""USD physics: the format of Isaac Sim and other simulators."""
