"""Surfaces as triangles: simple shapes, and mesh files with their colours, for viewers and collision shapes."""
