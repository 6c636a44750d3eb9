"""Retiming: the fastest timing of a prescribed joint path within bounds.

Modules import only from modules below them. From top to bottom, they are ``retime`` (reachability analysis), ``given``
(path arguments), ``result``, ``smooth`` (interior-point method with jerk and torque-rate bounds), ``bounds`` and
``path``.
"""
