"""Retiming: the fastest timing of a given joint path within bounds.

Modules import downwards only, from the top: ``retime`` (by reachability analysis); ``given`` (path arguments);
``result``; ``smooth`` (by an interior-point method, with jerk and torque-rate bounds); ``bounds``; ``path``.
"""
