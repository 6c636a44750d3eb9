"""The equations of the five documents in their own notation, independent of the rest of Torsor.

They are a second opinion, because the library computes the same quantities from its own recursions. Every function
takes a ``Form``. By default all equations are corrected; a form names the places that are evaluated as printed.
"""
