"""Surfaces as triangles: simple shapes, and mesh files with their colours. What viewers and collision shapes share."""
