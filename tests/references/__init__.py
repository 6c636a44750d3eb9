"""Complex-step derivatives, with which derivatives are compared."""
