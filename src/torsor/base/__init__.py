"""What every package needs: errors, checks of input, arrays, files, interrupts, progress, and result files."""
