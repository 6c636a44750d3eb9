"""The commands by name, with what ``torsor --help`` says of each; a command's file is imported when it is asked for."""

from torsor.cli.command import Command

COMMANDS = {
    "info": "show the links, joints and frames of a robot, or what a recording of a person holds",
    "dynamics": "compute forces, accelerations, matrices, reactions, energies ... at a state or over a table of states",
    "kinematics": "show where links and frames are: position, roll, pitch, yaw; with --v also their twists in own axes",
    "ik": "find a posture with links or frames at given positions or poses, or all postures of a six-axis arm",
    "count": "count the operations of a robot's algorithms",
    "equations": "print an algorithm of a robot as LaTeX or SymPy",
    "simulate": "simulate a robot from an initial state, save or plot the motion",
    "predict": "find an optimal motion, save or plot it",
    "retime": "find the fastest timing of a path of the joints within bounds",
    "measure": "joint angles, moments and powers of a recorded person, from markers and ground forces",
    "sweep": "compute many cases of a problem, side by side",
    "excite": "find a motion within limits that shows the parameters of a robot, for torsor identify",
    "identify": "identify masses, inertias and friction of a robot from recorded motions and forces",
    "reproduce": "compare the five documents with the library",
    "convert": "write a robot as URDF, SDF, MJCF, USD or TOML",
    "export": "write a robot's algorithms as source of C, C++ or JavaScript, as a package of ROS 2, or as an FMU",
    "view": "show robots and results in the browser",
    "cache": "show or clear the compiled kernels on disk",
    "warm": "compile a robot's algorithms ahead, so that no first call waits",
    "doctor": "show versions, processor, cache and extras, and test the installation in a few seconds",
    "demo": "show tables of an industrial arm on a move, and save a plot",
    "examples": "list the examples and tutorials that come with Torsor, or copy them to a folder",
    "completion": "print a script that completes commands and options in a shell",
}


def command(name: str) -> Command:
    """Return a command; its module is imported here.

    Example:
        >>> command("count").examples[0]
        'torsor count stanford'
    """
    match name:
        case "info":
            from torsor.cli.info import COMMAND
        case "dynamics":
            from torsor.cli.dynamics import COMMAND
        case "kinematics":
            from torsor.cli.kinematics import COMMAND
        case "ik":
            from torsor.cli.ik import COMMAND
        case "count":
            from torsor.cli.count import COMMAND
        case "equations":
            from torsor.cli.equations import COMMAND
        case "simulate":
            from torsor.cli.simulate import COMMAND
        case "predict":
            from torsor.cli.predict import COMMAND
        case "retime":
            from torsor.cli.retime import COMMAND
        case "measure":
            from torsor.cli.measure import COMMAND
        case "sweep":
            from torsor.cli.sweep import COMMAND
        case "excite":
            from torsor.cli.excite import COMMAND
        case "identify":
            from torsor.cli.identify import COMMAND
        case "reproduce":
            from torsor.cli.reproduce import COMMAND
        case "convert":
            from torsor.cli.convert import COMMAND
        case "export":
            from torsor.cli.export import COMMAND
        case "view":
            from torsor.cli.view import COMMAND
        case "bench":
            from torsor.cli.bench import COMMAND
        case "cache":
            from torsor.cli.cache import COMMAND
        case "warm":
            from torsor.cli.warm import COMMAND
        case "doctor":
            from torsor.cli.doctor import COMMAND
        case "demo":
            from torsor.cli.demo import COMMAND
        case "examples":
            from torsor.cli.examples import COMMAND
        case "completion":
            from torsor.cli.completion import COMMAND
        case _:
            raise KeyError(name)
    return COMMAND
