"""CasADi functions as C99 source."""
