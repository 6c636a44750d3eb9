"""CasADi functions as an ES module of JavaScript."""
