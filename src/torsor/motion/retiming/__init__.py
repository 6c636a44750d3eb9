"""Retiming: the fastest timing of a given path of the joints within bounds.

Files import downwards only, from the top: ``retime`` (by reachability analysis); ``given`` (what users give as a path);
``result``; ``smooth`` (by an interior point, with bounds of jerk and torque rate); ``bounds``; ``path``.
"""
