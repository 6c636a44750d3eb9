"""Movies: frames of a matplotlib figure as a .gif or .mp4 file, which is written completely or not at all."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.errors import ModelError, missing
from torsor.base.files import replacing
from torsor.base.progress import Bar

KINDS = (".gif", ".mp4")
COLOURS = 128  # number of colours of a .gif; each frame has its own palette


def movie_path(path: str | Path, where: str = "animate") -> Path:
    """Return the path of a movie; raise ModelError for unsupported suffixes, and for .mp4 without ffmpeg."""
    target = Path(path)
    if target.suffix.lower() not in KINDS:
        allowed = f"a name that ends with {' or '.join(KINDS)}"
        raise ModelError(f"cannot write {target.name!r}", value=target.name, where=where, allowed=allowed)
    if target.suffix.lower() == ".mp4":
        try:
            from matplotlib import rcParams
        except ImportError:
            raise missing("animations need matplotlib", "plot") from None
        if not shutil.which(str(rcParams["animation.ffmpeg_path"])):
            fix = "install ffmpeg, or write a .gif"
            raise ModelError(f"{target.name}: the program ffmpeg is not found", where=where, fix=fix)
    return target


def write_movie(
    figure: Any,
    show: Callable[[int], object],
    count: int,
    path: str | Path,
    rate: int,
    *,
    dpi: int = 70,
    progress: bool | None = None,
) -> Path:
    """Write ``count`` frames of a figure at ``rate`` frames per second and return the path; ``show(k)`` draws frame k.

    A .gif loops forever. ``progress`` is True, False, or None to show a bar on a terminal after one second. After
    Ctrl-C or an error, existing files are unchanged and no new file remains.
    """
    target = movie_path(path)
    write = _gif if target.suffix.lower() == ".gif" else _mp4
    with replacing(target) as part, Bar(count, progress, f"drawing {target.name}") as bar:

        def shown(k: int) -> None:
            show(k)
            bar.at(k)

        write(figure, shown, count, part, rate, dpi)
    return target


def _gif(figure: Any, show: Callable[[int], None], count: int, part: Path, rate: int, dpi: int) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas: Any = FigureCanvasAgg(figure)
    pictures = []
    figure.set_dpi(dpi)
    for k in range(count):
        show(k)
        canvas.draw()
        pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3]).quantize(COLOURS))
    options = {"duration": round(1000 / rate), "loop": 0, "optimize": False}
    pictures[0].save(part, format="GIF", save_all=True, append_images=pictures[1:], **options)


def _mp4(figure: Any, show: Callable[[int], None], count: int, part: Path, rate: int, dpi: int) -> None:
    from matplotlib.animation import FFMpegWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    # The format is explicit because the temporary name does not end with .mp4. Players need even sizes and colours at
    # half the resolution.
    even = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"]
    writer = FFMpegWriter(fps=rate, codec="h264", extra_args=[*even, "-f", "mp4"])
    with writer.saving(figure, str(part), dpi):
        for k in range(count):
            show(k)
            writer.grab_frame()
