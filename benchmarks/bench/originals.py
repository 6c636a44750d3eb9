"""The files that mutated_files.py mutates: one for each format, with many of its elements."""

INERTIA = '<mass value="2"/><inertia ixx="0.3" iyy="0.2" izz="0.4"/>'
BODY = f'<inertial><origin xyz="0.1 0 0.2" rpy="0 0.3 0"/>{INERTIA}</inertial>'
URDF = f"""<?xml version="1.0"?>
<robot name="arm" xmlns:drake="http://drake.mit.edu"><!-- a comment -->
<material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
<link name="base">{BODY}</link>
<link name="upper">{BODY}<visual><geometry><mesh filename="package://a/b.stl" scale="1 1 1"/></geometry></visual></link>
<link name="lower">{BODY}<visual><geometry><box size="1 2 3"/></geometry><material name="grey"/></visual></link>
<link name="finger">{BODY}</link><link name="tool"/>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 1" rpy="0 1.5708 0"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="10" velocity="3"/>
<dynamics damping="0.1" friction="0.2"/></joint>
<joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="1 0 0"/></joint>
<joint name="grip" type="prismatic"><parent link="lower"/><child link="finger"/>
<mimic joint="elbow" multiplier="2" offset="1"/>
</joint><joint name="weld" type="fixed"><parent link="finger"/><child link="tool"/></joint>
<transmission name="t"><joint name="shoulder"/><actuator name="m"><drake:rotor_inertia value="1e-4"/>
<drake:gear_ratio value="100"/><mechanicalReduction>1</mechanicalReduction></actuator></transmission>
<frame name="f" link="lower" xyz="0 0 1"/>
<loop_joint name="l"><link1 link="base" xyz="0 0 1"/><link2 link="lower"/><axis xyz="0 1 0"/></loop_joint>
</robot>
"""
MJCF = """<mujoco model="arm"><compiler angle="degree"/><option gravity="0 0 -9.81"/><!-- a comment -->
<default><joint damping="0.1" armature="0.01"/></default>
<worldbody><body name="a" pos="0 0 1" quat="0.7071 0.7071 0 0">
<joint name="j1" type="hinge" axis="0 1 0" range="-90 90"/>
<geom type="capsule" size="0.1 0.5" mass="1"/><site name="s" pos="0 0 1"/>
<body name="b" pos="1 0 0"><joint name="j2" type="slide" stiffness="3" springref="1"/><geom size="0.1" density="100"/>
<body name="c"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint name="j3" type="ball"/></body></body></body>
<body name="d"><freejoint/><geom type="box" size="1 1 1"/></body></worldbody>
<equality><joint joint1="j1" joint2="j2" polycoef="0 1 0 0 0"/><connect body1="c" body2="d" anchor="0 0 1"/></equality>
<actuator><motor joint="j1" gear="100" forcerange="-1 1"/></actuator>
<keyframe><key qpos="0 0 1 0 0 0 0 0 0 1 0 0 0"/></keyframe></mujoco>
"""
SOLID = "<pose>0.1 0 0.2 0 0.3 0</pose><mass>2</mass><inertia><ixx>0.3</ixx><iyy>0.2</iyy><izz>0.4</izz></inertia>"
SDF = f"""<?xml version="1.0"?>
<sdf version="1.11"><world name="w"><gravity>0 0 -1.62</gravity><model name="arm" canonical_link="base">
<pose>0 0 1 0 0 0</pose><link name="base"><inertial>{SOLID}</inertial></link><!-- a comment -->
<link name="upper"><pose relative_to="shoulder">0 0 0 0 0 0</pose><inertial>{SOLID}</inertial><collision name="c">
<pose relative_to="tool">0 0 1 0 0 0</pose><geometry><mesh><uri>model://a/b.stl</uri><scale>1 1 1</scale></mesh>
</geometry><surface><contact><collide_bitmask>0x3</collide_bitmask></contact></surface></collision></link>
<frame name="tool" attached_to="upper"><pose degrees="true">0 0 1 90 0 0</pose></frame>
<joint name="shoulder" type="revolute"><parent>base</parent><child>upper</child>
<pose relative_to="base" rotation_format="quat_xyzw">0 0 1 0 0 0 1</pose><axis><xyz expressed_in="__model__">0 1 0</xyz>
<limit><lower>-2</lower><upper>2</upper><effort>10</effort></limit><dynamics><damping>0.1</damping></dynamics></axis>
</joint>
<model name="hand" placement_frame="palm"><pose relative_to="tool">0 0 1 0 0 0</pose><link name="palm"/>
<link name="finger"><pose>1 0 0 0 0 0</pose></link><joint name="grip" type="universal"><parent>palm</parent>
<child>finger</child><axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint></model>
<joint name="wrist" type="screw"><parent>upper</parent><child>hand::palm</child><thread_pitch>10</thread_pitch><axis>
<mimic joint="shoulder" axis="axis"><multiplier>2</multiplier><offset>1</offset><reference>0</reference></mimic></axis>
</joint>
<joint name="close" type="ball"><parent>base</parent><child>hand::finger</child></joint>
</model></world></sdf>
"""
SCENE = """<mujoco model="scene"><compiler angle="radian"/><option gravity="0 0 -9.81"/><!-- a comment -->
<default><geom density="500" friction="0.6 0.005 0.0001" solref="0.02 1"/></default><worldbody>
<geom name="floor" type="plane" size="5 5 0.1" euler="0 0.01 0"/><geom name="wall" type="plane" size="1 1 1"
zaxis="1 0 0" pos="-1 0 0"/>
<body name="ball" pos="0 0 0.1"><joint name="lift" type="slide" axis="0 0 1" range="-1 1" limited="true"/>
<joint name="roll" type="hinge" axis="0 1 0" damping="0.01"/><geom name="ball" type="sphere" size="0.1"/></body>
<body name="foot" pos="0.5 0 0.06"><joint name="drop" type="slide" axis="0 0 1"/><geom name="shin" type="capsule"
size="0.05 0.2" euler="1.57 0 0"/></body></worldbody><contact><exclude body1="ball" body2="foot"/></contact>
<keyframe><key name="home" qpos="0.01 0 0"/></keyframe></mujoco>
"""
LINK = """prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {
  float physics:mass = 2
  point3f physics:centerOfMass = (0.5, 0, 0)
  float3 physics:diagonalInertia = (0.1, 0.2, 0.3)
  quatf physics:principalAxes = (1, 0, 0, 0)
  double3 xformOp:translate = (1, 2, 3)
  uniform token[] xformOpOrder = ["xformOp:translate"]
"""
USD = f"""#usda 1.0
(
  metersPerUnit = 0.01
  kilogramsPerUnit = 1
  upAxis = "Z"
  defaultPrim = "World"
)
def PhysicsScene "scene" {{
  vector3f physics:gravityDirection = (0, 0, -1)
  float physics:gravityMagnitude = 981
}}
def Xform "World" {{
def Xform "upper" ({LINK}
  bool physxRigidBody:disableGravity = 0
  def Cube "box" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{
    double size = 0.2
    float3 xformOp:scale = (1, 2, 3)
    uniform token[] xformOpOrder = ["xformOp:scale"]
    color3f[] primvars:displayColor = [(1, 0, 0)]
  }}
}}
def Xform "lower" ({LINK}
  def Mesh "hull" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"]) {{
    point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    int[] faceVertexCounts = [3, 3, 3, 3]
    int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]
    uniform token physics:approximation = "convexHull"
  }}
  def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{
    double radius = 0.1
  }}
}}
def Xform "finger" ({LINK}}}
def PhysicsRevoluteJoint "shoulder" (prepend apiSchemas = ["PhysicsDriveAPI:angular", "PhysxJointAPI"]) {{
  rel physics:body1 = </World/upper>
  uniform token physics:axis = "Y"
  float physics:lowerLimit = -90
  float physics:upperLimit = 45
  point3f physics:localPos0 = (0, 0, 1)
  quatf physics:localRot1 = (0.7071068, 0.7071068, 0, 0)
  float drive:angular:physics:maxForce = 100
  float physxJoint:armature = 5
  float physxJoint:jointFriction = 3
  float mjc:damping = 0.1
  float mjc:stiffness = 2
}}
def PhysicsPrismaticJoint "elbow" {{
  rel physics:body0 = </World/upper>
  rel physics:body1 = </World/lower>
  uniform token physics:axis = "X"
  float newton:armature = 0.1
}}
def PhysicsJoint "wrist" (prepend apiSchemas = ["PhysicsLimitAPI:transX", "PhysicsLimitAPI:rotZ"]) {{
  rel physics:body0 = </World/lower>
  rel physics:body1 = </World/finger>
  float limit:transX:physics:low = 1
  float limit:transX:physics:high = -1
  float limit:rotZ:physics:low = -30
  float limit:rotZ:physics:high = 30
}}
def PhysicsDistanceJoint "rod" {{
  rel physics:body0 = </World/upper>
  rel physics:body1 = </World/finger>
  float physics:minDistance = 2
  float physics:maxDistance = 2
  uniform bool physics:excludeFromArticulation = 1
}}
}}
"""
XACRO = f"""<?xml version="1.0"?>
<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro"><!-- a comment -->
<xacro:arg name="mass" default="2"/><xacro:arg name="two" default="true"/>
<xacro:property name="m" value="$(arg mass)"/><xacro:property name="sizes" value="${{dict(length=0.4, radius=0.05)}}"/>
<xacro:property name="names" value="${{['upper', 'lower']}}"/>
<xacro:macro name="body" params="m *origin x:=0.1 y:=^|0.2"><inertial><xacro:insert_block name="origin"/>
<mass value="${{2 * m}}"/>
<inertia ixx="${{m * (x**2 + y**2) / 12}}" iyy="0.2" izz="${{max(0.2, 0.4)}}"/></inertial></xacro:macro>
<xacro:macro name="rod" params="name parent **extra"><link name="${{name}}"><xacro:body m="${{m}}" x="0.3">
<origin xyz="0.1 0 ${{sizes['length'] / 2}}" rpy="0 ${{pi / 4}} 0"/></xacro:body><visual><geometry>
<cylinder length="${{sizes['length']}}" radius="${{sizes['radius']}}"/></geometry></visual></link>
<joint name="${{name}}_pin" type="revolute"><parent link="${{parent}}"/><child link="${{name}}"/>
<axis xyz="0 ${{cos(0)}} 0"/><limit lower="${{-pi}}" upper="${{radians(90)}}" effort="10" velocity="3"/>
<xacro:insert_block name="extra"/></joint></xacro:macro>
<link name="base"/><xacro:rod name="${{names[0]}}" parent="base"><extra><dynamics damping="0.1"/></extra></xacro:rod>
<xacro:if value="$(arg two)"><xacro:rod name="lower" parent="upper"><extra/></xacro:rod></xacro:if>
<xacro:unless value="${{m > 5}}"><link name="tool">{BODY}</link><joint name="weld" type="fixed"><parent link="lower"/>
<child link="tool"/></joint></xacro:unless>
<xacro:macro name="count" params="n"><xacro:if value="${{n > 0}}"><frame name="f${{n}}" link="tool" xyz="0 0 ${{n}}"/>
<xacro:count n="${{n - 1}}"/></xacro:if></xacro:macro><xacro:count n="3"/>
<gazebo reference="tool"><sensor name="camera"><update_rate>${{30}}</update_rate></sensor></gazebo>
</robot>
"""
LOG_MAP = """rate = 100.0
delay = 0.01
cutoff = 10.0
force_cutoff = 20.0
every = 2
missing = "skip"
saturation = [5, 5]
scale = { tau = [1, -1] }
[columns]
time = "t"
q = ["a", "b"]
tau = ["c", "d"]
[units]
q = "deg"
time = "s"
[drives]
side = "motor"
ratios = [32, -45]
coupling = [["joint2", "joint1", 32]]
offsets = [0, -1.5708]
"""
PROBLEM = """torsor = 1
name = "reach"
robot = "two_link"
frozen = {}
relaxation_order = [["motors"]]
[[phases]]
duration = [0.1, 2.0]
points = 6
degree = 3
nodes = 12
name = "swing"
[[objectives]]
kind = "time"
weight = 1.0
[[objectives]]
kind = "effort"
form = "absolute"
scale = { joint1 = 1.0, joint2 = 2.0 }
[[objectives]]
kind = "reference"
values = [[0, 0], [0.1, 0], [0.2, 0], [0.3, 0]]
[[constraints]]
kind = "start"
q = [0, -2]
v = 0
[[constraints]]
kind = "end"
q = { joint1 = 1, joint2 = -1 }
v = 0
[[constraints]]
kind = "torques"
upper = 10
name = "motors"
[[constraints]]
kind = "frame_position"
frame = "link2"
lower = [-1, -inf, 0]
during = [0.2, 0.8]
[[constraints]]
kind = "clearance"
first = { kind = "sphere", link = "link2", radius = 0.1 }
second = [{ kind = "capsule", start = [0, 0, 0], end = [0, 1, 5], radius = 0.2 }]
[solver]
name = "ipopt"
tolerance = 1e-6
iterations = 50
seconds = 10
refine = true
"""
STUDY = """torsor = 1
problem = "p.toml"
output = "o.sqlite"
workers = 2
keep = ["tau"]
[fixed]
"solve.tolerance" = 1e-5
[grid]
"links.link2.mass" = { from = 1.5, to = 1.9, count = 5 }
"motors.upper" = [10, 15]
[solver]
iterations = 100
"""
