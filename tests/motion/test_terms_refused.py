"""Errors of terms of motion problems."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.motion import (
    Accelerations,
    Capsule,
    Clearance,
    Effort,
    ElectricalEnergy,
    End,
    ExpressionConstraint,
    ExpressionCost,
    Follow,
    FramePosition,
    FrameVelocity,
    HalfSpace,
    Jerk,
    Linked,
    Manipulability,
    MechanicalEnergy,
    MotionProblem,
    Number,
    Orientation,
    Path,
    Periodic,
    Phase,
    Positions,
    Reaction,
    Reactions,
    Reference,
    Sphere,
    Spline,
    Start,
    Symmetric,
    Time,
    Torques,
    Unactuated,
    Velocities,
)

TWO = torsor.library.two_link()
MASS = "links.link2.mass"
HEAVY = TWO.parametric([MASS])
BALL = Sphere(link="link2", radius=0.1)
TERMS = [
    ("kind", Effort(kind="cubed")),
    ("width", Effort(kind="absolute", width=0)),
    ("scale", Effort(scale=-1.0)),
    ("elbow", Effort(scale={"elbow": 1.0})),
    ("kind", MechanicalEnergy(kind="best")),
    ("motor_constant", ElectricalEnergy(motor_constant=0.0)),
    ("a number, or 2 of them", Jerk(scale=[1.0, np.nan])),
    ("hand", Jerk(frame="hand")),
    ("neither force nor moment", Reaction()),
    ("force", Reactions(force=0)),
    ("joint9", Reactions(force=1.0, joints=["joint9"])),
    ("kind", Reaction(kind="max", force=1.0)),
    ("power", Reaction(kind="power", force=1.0, power=3)),
    ("the points have shape (4,)", Reference(values=[0.0, 1.0, 2.0, 3.0])),
    ("the values have 3 columns", Reference(values=np.zeros((5, 3)))),
    ("at", Reference(values=np.zeros((4, 2)), shares=[0, 0.5, 0.4, 1])),
    ("axes", Manipulability(frame="link2", axes="xw")),
    ("link2 can move along at most 2 of the 3 axes", Manipulability(frame="link2")),
    ("the function returns str", ExpressionCost(function=lambda node: "power")),
    ("the function returns 2 numbers", ExpressionCost(function=lambda node: node.q)),
    ("depends on stranger", ExpressionCost(function=lambda node: ca.SX.sym("stranger"))),
    ("no row has a finite bound", ExpressionConstraint(function=lambda node: node.q)),
    ("3 labels", ExpressionConstraint(function=lambda node: node.q, upper=1.0, labels=["a", "b", "c"])),
    ("the lower bound of joint2 exceeds the upper", Velocities(lower=[0.0, 2.0], upper=1.0)),
    ("[1.0, 2.0, 3.0]", Torques(upper=[1.0, 2.0, 3.0])),
    ("much", Torques(upper="much")),
    ("Accelerations has no bounds", Accelerations()),
    ("no v has a limit", Velocities()),
    ("no joint is elastic", Unactuated()),
    ("hull is not supported with at", Positions(upper=1.0, hull=True, at=0.5)),
    ("no row has a finite bound", FramePosition(frame="link2")),
    ("the target", FramePosition(frame="link2", position=[0.0, np.nan, 0.0])),
    ("both a target and bounds", FramePosition(frame="link2", position=[0, 0, 0], lower=0.0)),
    ("z of link2 is 0 for every motion", FramePosition(frame="link2", position=[0, 0, 1])),
    ("part", FrameVelocity(frame="link2", part="all", speed=1.0)),
    ("speed", FrameVelocity(frame="link2", speed=-1)),
    ("the orientation is incomplete", Orientation(frame="link2", axis=[1, 0, 0])),
    ("axis", Orientation(frame="link2", axis=[0, 0, 0], direction=[1, 0, 0])),
    ("rotation", Orientation(frame="link2", rotation=2 * np.eye(3))),
    ("tolerance", Orientation(frame="link2", rotation=np.eye(3), tolerance=4.0)),
    ("tolerance", Follow(frame="link2", curve=np.eye(6)[:, :3], tolerance=0)),
    ("the curve has 2 coordinates", Follow(frame="link2", curve=np.c_[np.arange(6), np.arange(6)])),
    ("there are no bodies", Clearance(first=BALL, second=())),
    ("bodies of two different links", Clearance(first=BALL, second=Sphere(link="link2", radius=1.0))),
    ("link7", Clearance(first=BALL, second=Sphere(link="link7", radius=1.0))),
    ("a body, or a table", Clearance(first=BALL, second={"kind": "cone"})),
    ("link, name, radius, center", Clearance(first=BALL, second={"kind": "sphere", "size": 1.0})),
    ("add start", Clearance(first=BALL, second={"kind": "capsule", "end": [1, 0, 0], "radius": 1.0})),
    ("have no radius", Clearance(first=Sphere(link="link2", radius=0), second=Sphere(radius=0))),
    ("up to 1e+50 m", Clearance(first=Sphere(link="link2", radius=1e200), second=Sphere(radius=0))),
    ("at", Torques(at=1.5)),
    ("during", Torques(during=(0.5, 0.2))),
    ("during", Effort(during=(0.7, 0.1))),
    ("during", Effort(during=(0.0, 2.0))),
    ("during", Time(during=(0.5, 0.5))),
    ("during", Torques(during=0.5)),
    ("at", Torques(at="start")),
    ("weight", Effort(weight=[1, 2])),
    ("weight", Effort(weight=np.nan)),
    ("a number, or 2 of them", Torques(upper="5")),
    ("a number, or 2 of them", Torques(upper=True)),
    ("some of joint1, joint2", Torques(upper=1.0, only=3)),
    ("no phase ''", Torques(upper=1.0, phase="")),
    ("no phase False", Torques(upper=1.0, phase=False)),
    ("there is no collocation point during (0.1, 0.2)", Unactuated(names=["joint1"], during=(0.1, 0.2))),
    ("scale", Effort(kind="normalised", scale=2.0)),
    ("tolerance", FramePosition(frame="link2", lower=0.0, tolerance=0.1)),
    ("name", Torques(upper=1.0, name=3)),
    ("function", ExpressionCost(function=None)),
    ("2000 or fewer", Reference(values=np.zeros((2001, 2)))),
    ("names", Unactuated(names=[])),
    ("joints", Reactions(force=1.0, joints=[])),
    ("points", Reference(values="abc")),
    ("points", Follow(frame="link2", curve=[[0, 1], [2]])),
    ("degree, knots and points", Follow(frame="link2", curve={"degree": 3})),
    ("a body", Clearance(first=BALL, second=3)),
    ("['sphere']", Clearance(first=BALL, second={"kind": ["sphere"]})),
    ("order", Periodic(order=4)),
    ("elbow", Symmetric(partners={"joint1": "elbow"})),
    ("joint12", Symmetric(only="joint12")),
    ("only", Symmetric(only=[])),
    ("signs", Symmetric(signs=-1.0)),
    ("a number", Symmetric(shifts={"joint1": np.nan})),
    ("phase", Start(q=0.0, phase="swing")),
    ("swing", Torques(phase="swing")),
]


@pytest.mark.parametrize(("about", "term"), TERMS)
def test_terms_that_make_no_sense_are_refused(about, term):
    costs, rows = ([term], []) if hasattr(term, "weight") else ([Time()], [term])
    with refused(about):
        _ = MotionProblem(TWO, Phase(1.0, points=5, nodes=3), costs, rows).program


@pytest.mark.parametrize(
    ("about", "make"),
    [
        ("radius", lambda: Sphere(radius=-1)),
        ("start", lambda: Capsule(start=[0, 0, 1], end=[0, 0, 1], radius=0.1)),
        ("normal", lambda: HalfSpace(normal=[0, 0])),
    ],
)
def test_bodies_that_make_no_sense_are_refused(about, make):
    with refused(about):
        make()


def _problem(**options):
    options = {"robot": TWO, "phases": Phase(1.0, points=5, nodes=3), "objective": Time()} | options
    return MotionProblem(**options)


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("Reaction", lambda: _problem(objective=[Reaction(kind="peak", force=1.0)] * 2)),
        ("numbers", lambda: _problem(numbers={"mass": Number(1.0)})),
        ("the path has 3 coordinates", lambda: _problem(path=Path.through(np.eye(6)[:, :3] + np.arange(6)[:, None]))),
        ("assembly", lambda: _problem(assembly=[0.0, 0.0])),
        (
            "are not supported for a robot with loops",
            lambda: _problem(robot=torsor.library.four_bar().parametric(["gravity"])),
        ),
        (
            "hull",
            lambda: _problem(robot=torsor.library.four_bar(), constraints=[Positions(upper=9.0, hull=True)]),
        ),
        (
            "joint1",
            lambda: _problem(constraints=[Start(q=[2.0, 0.0]), Positions(upper=1.0, hull=True)]),
        ),
        ("progress", lambda: _problem(path=_line(), constraints=[End(q=1.5)])),
        (
            "hull is not supported along a path",
            lambda: _problem(path=_line(), constraints=[Positions(upper=1.0, hull=True)]),
        ),
        (
            "the profile 'joint1' has the name of a coordinate",
            lambda: _problem(constraints=[Follow(frame="link2", curve=np.eye(6)[:, :3], progress="joint1")]),
        ),
        ("there are no phases", lambda: _problem(phases=[])),
        ("phases contains 1.0", lambda: _problem(phases=[1.0])),
        ("go", lambda: _problem(phases=[Phase(1.0, name="go")] * 2)),
        ("contains 'joint9'", lambda: _problem(phases=_own(joint9=Spline.uniform(6)))),
        ("own", lambda: _problem(phases=_own(joint1=8))),
        ("objective contains Torques", lambda: _problem(objective=Torques(upper=1.0))),
        ("constraints contains Effort", lambda: _problem(constraints=[Effort()])),
        ("two_link", lambda: _problem(robot="two_link")),
        ("pass robot.as_robot()", lambda: _problem(robot=torsor.library.gough_stewart())),
        ("frozen", lambda: _problem(frozen={"joint1": np.nan})),
        ("no coordinate moves", lambda: _problem(frozen={"joint1": 0.0, "joint2": 0.0})),
        ("line", lambda: _problem(path="line")),
        ("a Number", lambda: _problem(robot=HEAVY, numbers={MASS: 1.0})),
        ("lower <= upper", lambda: _problem(robot=HEAVY, numbers={MASS: Number(1.0, 3.0, 2.0)})),
        ("a finite start", lambda: _problem(robot=HEAVY, numbers={MASS: Number(np.nan)})),
        ("assembly", lambda: _problem(robot=torsor.library.four_bar(), assembly=[0.0, "a", 1.0])),
        (
            "on the control points of joint1 contradict",
            lambda: _problem(constraints=[_hull(1.0, 2.0), _hull(-2.0, 0.0)]),
        ),
        ("order", lambda: _problem(phases=[Phase(1.0)] * 2, constraints=[Linked(order=-1)])),
        ("a number, or 2 of them", lambda: _problem(constraints=[End(q=[0.0, 0.0, 0.0])])),
    ],
)
def test_problems_that_make_no_sense_are_refused(message, make):
    with refused(message):
        _ = make().program


def _own(**splines):
    return Phase(1.0, points=5, nodes=3, own=splines)


def _hull(lower, upper):
    return Positions(lower=lower, upper=upper, hull=True)


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("duration", {"duration": "long"}),
        ("duration", {"duration": (1, "a")}),
        ("duration", {"duration": True}),
        ("nodes", {"nodes": 2.5}),
        ("nodes", {"nodes": -3}),
        ("nodes", {"nodes": ["a", "b"]}),
        ("degree", {"degree": 3.0}),
        ("the number of control points", {"points": 12.0}),
        ("ab", {"knots": "ab"}),
        ("name", {"name": 3}),
        ("points is 7, but the knots belong to 5 points", {"points": 7, "knots": [0.5]}),
    ],
)
def test_phases_that_make_no_sense_are_refused(message, options):
    with refused(message):
        Phase(**{"duration": 1.0} | options)


def _line():
    return Path.through(np.linspace([0.0, 0.0], [1.0, 1.0], 6))
