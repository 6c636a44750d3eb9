"""Foundations of all packages: errors, input checks, arrays, files, interrupts, progress and result files."""
