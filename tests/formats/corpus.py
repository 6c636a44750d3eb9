"""A generator of odd but legal robot files: each is drawn by hypothesis as text.

What files of the wild have: limits the wrong way round, transmissions that nothing uses, names that clash between
kinds of parts, meshes that do not exist, comments and blanks in odd places, namespaces, units, huge and tiny numbers,
numbers written in many ways, elements in any order and elements of other programs.
"""

from functools import cache

from hypothesis import strategies as st

NAMES = (
    "arm",
    "arm ",
    "a/b",
    "a.b",
    "-",
    "0",
    "é",
    "关节",
    "two words",
    "x" * 60,
    "base",
    "world",
    "root",
    "a'b",
    "[b]",
)
SPACES = ("", " ", "\n", "\t  ", "<!-- <link name='no'/> -->", "<!---->")
AXES = ("1 0 0", "0 1 0", "0 0 1", "0 0 -1", "1 1 0", "0.3 -0.4 1.2", "1e-3 0 0", "0 200 0")


@cache  # a strategy that is made anew is validated anew, which takes longer than to draw from it
def numbers(low: float, high: float) -> st.SearchStrategy[str]:
    """Return a number in one of the ways in which files write it."""
    ways = ("{:.6g}", "{:.17g}", "{:e}", " {:.4f}", "{:+.3g}")
    return st.builds(lambda way, x: way.format(x), st.sampled_from(ways), st.floats(low, high, width=32))


@cache
def sizes(least: int, most: int) -> st.SearchStrategy[str]:
    """Return a positive number of any order of magnitude between powers of ten."""
    return st.builds(lambda m, e: f"{m:.5f}e{e}", st.floats(1, 9.5, width=32), st.integers(least, most))


@cache
def rows(count: int, each: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return several numbers with blanks between them."""
    return st.lists(each, min_size=count, max_size=count).map("  ".join)


@cache
def angles() -> st.SearchStrategy[str]:
    """Return three angles, often quarter turns with few digits."""
    return rows(3, st.sampled_from(("0", "1.5708", "-1.570796", "3.14159265", "0.1", "-2.5", "1e-8", "7")))


@st.composite
def inertials(draw: st.DrawFn, least: int = -3, most: int = 4) -> tuple[str, list[float], str, str]:
    """Return mass, principal moments of a real body, and xyz and rpy of their frame."""
    mass = draw(sizes(least, most))
    a, b, c = draw(st.tuples(*[st.floats(0.0625, 1.0, width=32)] * 3))
    moments = [float(mass) * x for x in (b + c, a + c, a + b)]
    return mass, moments, draw(rows(3, numbers(-1, 1))), draw(angles())


@st.composite
def urdf_files(draw: st.DrawFn) -> str:
    """Return the text of a URDF file with one to five moving links."""
    count = draw(st.integers(1, 5))
    stem = draw(st.sampled_from(NAMES))
    links = [stem, *(f"{draw(st.sampled_from(NAMES))}{k}" for k in range(count))]
    # Links and joints may have the same name; two links may not.
    joints = links[1:] if draw(st.booleans()) else [f"j{k}" for k in range(count)]
    gap = st.sampled_from(SPACES)
    parts = [f'<link name="{links[0]}">{draw(_body()) if draw(st.booleans()) else ""}</link>']
    for k in range(count):
        parent = links[draw(st.integers(0, k))]
        parts.append(f'<link name="{links[k + 1]}">{draw(_body())}{draw(_visual())}{draw(gap)}</link>')
        kind = draw(st.sampled_from(("revolute", "continuous", "prismatic", "fixed", "floating", "revolute")))
        inside = [
            f'<parent link="{parent}"/>',
            f'<child link="{links[k + 1]}"/>',
            f'<axis xyz="{draw(st.sampled_from(AXES))}"/>',
            draw(gap),
        ]
        if draw(st.booleans()):
            inside.append(f'<origin xyz="{draw(rows(3, numbers(-2, 2)))}" rpy="{draw(angles())}"/>')
        if kind in ("revolute", "prismatic"):
            low, high = draw(st.sampled_from((("-1", "1"), ("1", "-1"), ("0", "0"), ("-1e30", "1e30"), ("-3", "0"))))
            inside.append(f'<limit lower="{low}" upper="{high}" effort="{draw(sizes(-2, 6))}" velocity="0"/>')
        inside = draw(st.permutations(inside))
        parts.append(f'<joint type="{kind}" name="{joints[k]}">{"".join(inside)}</joint>')
    parts += draw(st.lists(st.sampled_from(_EXTRAS), max_size=3, unique=True))
    text = draw(gap).join(draw(st.permutations(parts)))
    head = draw(st.sampled_from(("", '<?xml version="1.0"?>', '\n<?xml version="1.0" encoding="utf-8"?>')))
    space = draw(
        st.sampled_from(("", ' xmlns:drake="http://drake.mit.edu"', ' xmlns="http://www.ros.org" version="1.0"'))
    )
    return f'{head}{draw(st.sampled_from(("", "<!-- - -->")))}<robot name="{stem}"{space}>{text}</robot>\n'


_ROTOR = '<actuator name="m"><rotorInertia>1</rotorInertia></actuator>'
_EXTRAS = (
    f'<transmission name="t"><joint name="nothing"/>{_ROTOR}</transmission>',
    '<transmission name="u"><type>x</type><mechanicalReduction>ratio</mechanicalReduction></transmission>',
    '<gazebo reference="x"><mass>1</mass><xacro:thing/></gazebo>',
    '<material name="m"><color rgba="1 0 0 1"/></material>',
    "<ros2_control><joint name='x'/></ros2_control>",
    '<cable name="c"/>',
    '<frame name="somewhere else" link="nothing"/>',
    '<sensor name="s"><xacro:camera/></sensor>',
)


@st.composite
def _body(draw: st.DrawFn) -> str:
    mass, (x, y, z), xyz, rpy = draw(inertials())
    origin = f'<origin xyz="{xyz}" rpy="{rpy}"/>' if draw(st.booleans()) else ""
    inertia = f'<inertia ixx="{x!r}" iyy="{y!r}" izz="{z!r}" ixy="0" ixz="0" iyz="0"/>'
    parts = draw(st.permutations([origin, f'<mass value="{mass}"/>', inertia]))
    return f"<inertial>{''.join(parts)}</inertial>"


@st.composite
def _visual(draw: st.DrawFn) -> str:
    shapes = (
        "",
        '<visual><geometry><mesh filename="package://nothing/a.stl" scale="0.001 0.001 0.001"/></geometry></visual>',
        '<visual><geometry><sphere radius="1"/></geometry><material name="unknown"/></visual>',
        '<collision><geometry><box size="1 1 1"/></geometry></collision>',
    )
    return draw(st.sampled_from(shapes))


@st.composite
def mjcf_files(draw: st.DrawFn) -> str:
    """Return the text of an MJCF file with one to four bodies."""
    unit = draw(st.sampled_from(("degree", "radian")))
    order = draw(st.sampled_from(("xyz", "XYZ", "zyx")))
    damping, armature = draw(st.sampled_from((("0", "0"), ("0.1", "0.02"), ("1e3", "1e-6"))))
    flags = draw(st.sampled_from(("", '<flag gravity="disable"/>', '<flag contact="disable"/>')))
    gravity = draw(st.sampled_from(("0 0 -9.81", "0 0 0", "1 -2 30")))
    body, names = "", draw(st.permutations(NAMES))
    for k in range(draw(st.integers(1, 4))):
        turn = {"degree": "30 -45 90", "radian": "0.5 -0.8 1.5708"}[unit]
        place = draw(st.sampled_from(("", f' euler="{turn}"', ' quat="0.70711 0 0.70711 0"', ' axisangle="0 0 1 1"')))
        joints = "".join(draw(st.lists(_mjcf_joint(k, unit), max_size=2, unique_by=lambda text: text[:14])))
        mass, moments, xyz, _ = draw(inertials(-2, 3))
        shape = f'<inertial pos="{xyz}" mass="{mass}" diaginertia="{" ".join(map(repr, moments))}"/>'
        if draw(st.booleans()):
            shape = f'<geom type="capsule" size="0.1 0.3" pos="{xyz}" density="{draw(sizes(1, 4))}"/>'
        name = f' name="{names[k]}"' if names[k] != "world" else ""
        inner = (
            f"{joints}{shape}{body}" if draw(st.booleans()) else f"{shape}{joints}{draw(st.sampled_from(SPACES))}{body}"
        )
        site = '<site pos="0 0 1"/>' if draw(st.booleans()) else ""
        body = f'<body{name} pos="{draw(rows(3, numbers(-1, 1)))}"{place}>{inner}{site}</body>'
    compiler = f'<compiler angle="{unit}" eulerseq="{order}"/><option gravity="{gravity}">{flags}</option>'
    default = f'<default><joint damping="{damping}" armature="{armature}"/></default>'
    return f'<mujoco model="m">{compiler}{default}<worldbody>{body}</worldbody></mujoco>'


@st.composite
def _mjcf_joint(draw: st.DrawFn, body: int, unit: str) -> str:
    kind = draw(st.sampled_from(("hinge", "slide", "hinge")))
    limits = draw(st.sampled_from(("", ' range="-1 1"', ' range="-2 -1" limited="true"', ' range="1 1.5" ref="1.2"')))
    spring = draw(st.sampled_from(("", ' stiffness="3"', ' stiffness="2" springref="0.5"')))
    number = draw(st.integers(0, 9))
    place = f'pos="{draw(rows(3, numbers(-1, 1)))}" axis="{draw(st.sampled_from(AXES))}"'
    return f'<joint name="{body}{number}" type="{kind}" {place}{limits}{spring}/>'
