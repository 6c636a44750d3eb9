"""Inverse optimal control: the weights of objectives with which a motion problem predicts measured motions.

From the top: ``fitting`` (the search for weights, ``fit_weights``), ``weight_fit`` (its result), ``single_level`` (the
weights that leave the least gradient at the data), ``optima`` (solved problems and their sensitivities), ``measured``
(data and residuals), ``weighted`` (a program whose weights are inputs).
"""
