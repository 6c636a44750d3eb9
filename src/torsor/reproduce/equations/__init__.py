"""The equations of the five documents in their original notation, independent of the rest of Torsor.

They are an independent check, because the library computes the same quantities with its own recursions. Every function
takes a ``Form``. By default all equations are corrected; a form names the equations that are evaluated as printed.
"""
