"""Views of robots and motions: tables for the terminal, and figures."""

from torsor.view.bearings import BearingLoads, bearing_loads, bearing_table
from torsor.view.figures import plot_motion
from torsor.view.tables import count_table, counted, drive_table, joint_table, link_table, motion_table, state_table

__all__ = [
    "BearingLoads",
    "bearing_loads",
    "bearing_table",
    "count_table",
    "counted",
    "drive_table",
    "joint_table",
    "link_table",
    "motion_table",
    "plot_motion",
    "state_table",
]
