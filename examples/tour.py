"""Shows what `pto-opt` does, on the examples of this folder: `python examples/tour.py`.

Each step prints the command that it runs and what comes out; arrays go to a temporary folder.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def show(folder: Path, command: str) -> None:
    """Prints a command and runs it."""
    print(f"\n$ {command}", flush=True)
    words = [sys.executable, "-m", "pto.cli", *shlex.split(command)[1:]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])}
    subprocess.run(words, cwd=folder, env=environment, check=False)


def main() -> None:
    """Runs the tour."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(HERE, folder / "examples")
        x = np.random.default_rng(0).normal(0, 20_000, (40, 64)).astype(np.float32)
        np.save(folder / "x.npy", x)

        show(folder, "pto-opt verify examples/mistakes.pto")
        show(folder, "pto-opt tmp examples/partial_tile.pto")
        show(
            folder,
            "pto-opt run examples/cast_f32_f16.pto --arg x=x.npy --arg rows=40 --out y=y.npy",
        )
        y = np.load(folder / "y.npy")
        with np.errstate(over="ignore"):
            direct = x.astype(np.float16)
        same = np.count_nonzero(y.view(np.uint16) == direct.view(np.uint16))
        print(f"\ny.npy: {same} of {y.size} elements have the bits of numpy's astype;")
        print("the others overflow: numpy gives inf, the target its largest number, 65504.")
        show(folder, "pto-opt explain f32 f16 0.500244140625")


if __name__ == "__main__":
    main()
