"""The equations of the five documents, each in its own letters, a page or two each, independent of the rest of Torsor.

They are the second opinion: the library computes the same quantities from its own recursions. Every function takes a
``Form``: by default all equations are corrected, and a form names the places where they are to be as printed.
"""
