"""The equations of the five documents in their original notation, independent of the rest of Torsor.

They are an independent check, because the library computes the same quantities with different recursions. Every
function takes a ``Form``. By default, all equations are corrected. A form names the equations to evaluate as printed.
"""
