"""Retiming: the fastest timing of a given path of the joints within bounds.

Files import downwards only, from the top: retime (the facade); given (what users give as a path); result, figure, uses
and files; causes; the timings, smooth with corners, and reachability; rows (what bounds mean along a path); timing,
path, splines, bounds.
"""
