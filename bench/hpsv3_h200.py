"""HPSv3 through the scorer, batched, against the package one picture at a time.

Qwen2-VL-7B with HPSv3's head in its true shape with random weights, by the real package hpsv3
1.0.0. Theirs writes each picture to a file and asks the package for it alone, without gradients;
ours is the service over HTTP, asked from another process. They take turns. The scores of 64
paintings of the pool must be equal: a difference of at most 1 % of their spread.

The loader sets the size from which the C library maps blocks apart, for this process as for the
service's. Theirs runs with the size at which that library's own adapting ends, and so does ours
once more, to see what the setting costs. The memory is that of a service by itself, as its image
starts it, over a thousand calls with different pictures.

The first layer of the head reads the directions in which 64 other paintings differ, as a trained
head does: what a random one reads is mostly the same for every picture. Needs a GPU with 40 GiB and
the environment of locks/hpsv3.txt.

    python bench/hpsv3_h200.py [--rounds 3] [--tiny]
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import random
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zlib
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

PROMPT = "a loose watercolour flower"
PAINTINGS = ROOT / "python/watercolour/reward/pools/flowers/paintings"
#: Largest batch, requests at once, and pictures of one round.
LOADS = ((1, 1, 32), (8, 16, 128), (32, 64, 256))
SINGLES = 32
COMPARED = 64
#: Pixels a side, as the published experiment's paintings.
SIDE = 600
MOST_DIFFERENCE = 0.01
CHECKPOINT = "HPSv3.safetensors"
#: Where glibc stops to raise the size from which it maps blocks apart (malloc.h, 64 bits).
ADAPTED_BYTES = 32 * 2**20
#: Calls under which the memory must stay as it is, after those in which it grows to its size.
CALLS, GROWING, PART = 1_000, 200, 200
LOADING_SECONDS = 90


def stamped(png: bytes, number: int) -> bytes:
    """The same picture in other bytes, so that nobody remembers it: a text chunk before its end."""
    body = b"tEXtnumber\0%d" % number
    chunk = (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    return png[:-12] + chunk + png[-12:]


def write_paintings(folder: Path) -> None:
    """Paintings of the pool by chance, but always the same, in the size of the experiment's."""
    from PIL import Image

    found = sorted(PAINTINGS.glob("*.png"))
    random.Random(0).shuffle(found)

    def write(number: int) -> None:
        with Image.open(found[number]) as image:
            large = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        large.save(folder / f"{number:03}.png")

    folder.mkdir()
    with ThreadPoolExecutor() as pool:
        list(pool.map(write, range(2 * COMPARED)))


def paintings(folder: Path) -> tuple[list[bytes], list[bytes]]:
    """Paintings to compare, and others to fit the head on."""
    found = [path.read_bytes() for path in sorted(folder.iterdir())]
    return found[:COMPARED], found[COMPARED:]


async def ask(url: str, folder: Path, first: int, count: int, at_once: int) -> dict[str, Any]:
    """Score pictures over HTTP, so many at once; the seconds of all, and each mean."""
    from watercolour.score.client import ScoreClient

    shown, _ = paintings(folder)
    pictures = [stamped(shown[n % len(shown)], first + n) for n in range(count)]
    places = asyncio.Semaphore(at_once)

    async def one(picture: bytes) -> float:
        async with places:
            return (await client.score(picture, PROMPT)).mu

    async with ScoreClient(url) as client:
        await client.score(stamped(shown[0], first - 1), PROMPT)
        began = time.perf_counter()
        mus = await asyncio.gather(*map(one, pictures))
        return {"seconds": time.perf_counter() - began, "mus": mus}


def asked(url: str, folder: Path, first: int, count: int, at_once: int) -> dict[str, Any]:
    """The same from a process of its own."""
    words = ["--ask", url, str(folder), *map(str, (first, count, at_once))]
    done = subprocess.run([sys.executable, __file__, *words], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def served(backend: Any, batch: int) -> Generator[str]:
    """The service around the loaded backend, in a thread; its URL."""
    import uvicorn

    from watercolour.score.app import create_app
    from watercolour.score.backend import Batching

    app = create_app(lambda _: backend, Batching(batch, 0.02, 256))
    config = uvicorn.Config(app, port=0, log_level="error", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@contextmanager
def blocks_mapped_from(size: int) -> Generator[None]:
    """Blocks of so many bytes are mapped apart; afterwards those that the loader says again."""
    from watercolour.score import hpsv3_load

    mallopt = ctypes.CDLL(None).mallopt
    mallopt(hpsv3_load.M_MMAP_THRESHOLD, size)
    try:
        yield
    finally:
        mallopt(hpsv3_load.M_MMAP_THRESHOLD, hpsv3_load.MAPPED_BYTES)


class Reference:
    """The package by itself, with the vision tower as it ships."""

    def __init__(self, backend: Any, folder: Path) -> None:
        self._inferencer = backend._inferencer
        self._blocks = [block.attn for block in self._inferencer.model.visual.blocks]
        self._ours = [attention.forward for attention in self._blocks]
        self._file = folder / "painting.png"
        self.paintings = folder / "paintings"
        self._memory = ExitStack()

    def __enter__(self) -> Reference:
        self._memory.enter_context(blocks_mapped_from(ADAPTED_BYTES))
        for attention in self._blocks:
            del attention.forward
        return self

    def __exit__(self, *_: object) -> None:
        for attention, forward in zip(self._blocks, self._ours, strict=True):
            attention.forward = forward
        self._memory.close()

    def mu(self, picture: bytes) -> float:
        """One picture, alone."""
        import torch

        self._file.write_bytes(picture)
        with torch.no_grad():
            return float(self._inferencer.reward([str(self._file)], [PROMPT])[0][0])

    def batch(self, pictures: list[bytes]) -> None:
        """Many at once, as the package itself can."""
        import torch

        paths: list[str] = []
        for number, picture in enumerate(pictures):
            path = self._file.with_name(f"{number}.png")
            path.write_bytes(picture)
            paths.append(str(path))
        with torch.no_grad():
            self._inferencer.reward(paths, [PROMPT] * len(paths)).tolist()


def fit_head(backend: Any, others: list[bytes]) -> None:
    """Let the head's first layer read the eight directions in which other paintings differ most."""
    import torch

    model, seen = backend._inferencer.model, list[torch.Tensor]()
    prepared = [backend.prepare(picture, PROMPT) for picture in others]
    token = backend._inferencer.processor.tokenizer.convert_tokens_to_ids("<|Reward|>")
    place = prepared[0].ids[0].tolist().index(token)
    hook = model.rm_head.register_forward_pre_hook(
        lambda _, args: seen.append(args[0][:, place].float().clone())
    )
    for start in range(0, len(prepared), 8):
        backend.means(prepared[start : start + 8])
    hook.remove()
    states = torch.cat(seen)
    mean = states.mean(0)
    _, sizes, directions = torch.linalg.svd(states - mean, full_matrices=False)
    count = min(8, len(sizes) - 1)
    # All by one scale: what differs little counts little, as it does where a head was trained.
    scaled = directions[:count] / (sizes[0] / len(states) ** 0.5)
    chance = torch.Generator().manual_seed(1)
    first = model.rm_head[0]
    mixed = torch.randn(first.weight.shape[0], count, generator=chance).to(scaled) @ scaled
    print(f"states differ by {float((states - mean).norm(dim=1).mean() / mean.norm()):.4f} of them")
    with torch.no_grad():
        first.weight.copy_(mixed)
        first.bias.copy_(-mixed @ mean)


def differences(url: str, reference: Reference, first: int) -> tuple[float, float, float]:
    """Largest difference of ours, batched, to theirs, alone; the spread; the difference's share."""
    ours = asked(url, reference.paintings, first, COMPARED, COMPARED)["mus"]
    with reference:
        theirs = [reference.mu(picture) for picture in paintings(reference.paintings)[0]]
    largest = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
    spread = max(theirs) - min(theirs)
    print(
        f"mu of {COMPARED} paintings {min(theirs):+.3f} to {max(theirs):+.3f}, deviation "
        f"{statistics.pstdev(theirs):.3f}; ours differs by at most {largest:.5f}, "
        f"{largest / spread:.3%} of the spread"
    )
    return largest, spread, largest / spread


def timed(work: Callable[[], object], count: int) -> float:
    """Pictures a second."""
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


def memory() -> tuple[float, float]:
    """GiB on the device now, and of this process at its greatest."""
    import torch

    device = torch.cuda.memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
    return device, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def peak() -> float:
    """GiB on the device at its greatest since the last call."""
    import torch

    if not torch.cuda.is_available():
        return 0.0
    found = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.reset_peak_memory_stats()
    return found


def load(folder: Path, *, tiny: bool) -> Any:
    """Write a random checkpoint, then load it as an operator's pod does."""
    import torch
    from tests.hpsv3 import model as random_model

    from watercolour.score import hpsv3_load

    device = "cuda" if torch.cuda.is_available() else "cpu"
    began = time.perf_counter()
    base, path = folder / "base", folder / CHECKPOINT
    random_model.write_base(base, random_model.TINY if tiny else random_model.FULL)
    weights = random_model.random_weights(base, device=device)
    count = sum(tensor.numel() for tensor in weights.values())
    random_model.write_checkpoint(path, weights)
    del weights
    if device == "cuda":
        torch.cuda.empty_cache()
    print(f"{count:,} parameters written in {time.perf_counter() - began:.0f} s", flush=True)
    began = time.perf_counter()
    dtype = "bfloat16" if device == "cuda" else "float32"
    source = hpsv3_load.Source(checkpoint=path, base=str(base), dtype=dtype)
    backend = hpsv3_load.load(source, lambda _stage, _share: None)
    print(f"loaded in {time.perf_counter() - began:.0f} s: {backend.version}", flush=True)
    return backend


def by_hand(backend: Any, reference: Reference, shown: list[bytes]) -> None:
    """What the model alone does without HTTP, and what preparing costs."""
    peak()
    began = time.perf_counter()
    prepared = [backend.prepare(picture, PROMPT) for picture in shown[:32]]
    each = (time.perf_counter() - began) / 32
    print(f"preparing: {each * 1e3:.1f} ms a picture; {prepared[0].ids.shape[1]} tokens each")
    for batch in (1, 8, 32):
        backend.means(prepared[:batch])
        rate = timed(lambda size=batch: backend.means(prepared[:size]), batch)
        print(f"the model alone, {batch:2} at once: {rate:6.1f} pictures/s, peak {peak():.1f} GiB")
    with reference:
        # Its mask over all patches has their number squared.
        for batch in (8, 32) if peak() else (2,):
            reference.batch(shown[:batch])
            rate = timed(lambda size=batch: reference.batch(shown[:size]), batch)
            print(f"the package's own batch of {batch}: {rate:.1f} pictures/s, {peak():.1f} GiB")


def rounds(backend: Any, reference: Reference, shown: list[bytes], count: int) -> dict[str, float]:
    """Pictures a second by side, medians of the rounds."""
    greatest, at_once, pictures = LOADS[-1]
    adapted = f"batch {greatest}, blocks mapped from {ADAPTED_BYTES >> 20} MiB"
    sides = ("theirs", *(f"batch {batch}" for batch, _, _ in LOADS), adapted)
    taken: dict[str, list[float]] = {side: [] for side in sides}
    asked_so_far = 10**6
    for number in range(count):
        with reference:
            reference.mu(shown[0])
            singles = shown[:SINGLES]
            taken["theirs"].append(timed(lambda p=singles: [reference.mu(x) for x in p], SINGLES))
        for batch, at_once, pictures in LOADS:
            with served(backend, batch) as url:
                found = asked(url, reference.paintings, asked_so_far, pictures, at_once)
            asked_so_far += pictures + 1
            taken[f"batch {batch}"].append(pictures / found["seconds"])
        with blocks_mapped_from(ADAPTED_BYTES), served(backend, greatest) as url:
            found = asked(url, reference.paintings, asked_so_far, pictures, at_once)
        asked_so_far += pictures + 1
        taken[adapted].append(pictures / found["seconds"])
        device, own = memory()
        told = "  ".join(f"{side} {rates[-1]:.1f}" for side, rates in taken.items())
        print(f"round {number + 1}: {told}; {device:.3f} GiB, {own:.2f} GiB here", flush=True)
    return {side: statistics.median(rates) for side, rates in taken.items()}


@contextmanager
def started(folder: Path, batch: int) -> Generator[tuple[str, int]]:
    """The service as its image starts it, from the checkpoint, loaded; its URL and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["-m", "watercolour.score.service", "--backend", "hpsv3", "--host", "127.0.0.1"]
    words += ["--port", str(port), "--max-batch", str(batch), "--window-seconds", "0.02"]
    words += ["--checkpoint", str(folder / CHECKPOINT), "--base", str(folder / "base")]
    if not peak():
        words += ["--dtype", "float32"]
    paths = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    child = subprocess.Popen([sys.executable, *words], env={**os.environ, "PYTHONPATH": paths})
    try:
        ready(f"http://127.0.0.1:{port}", child)
        yield f"http://127.0.0.1:{port}", child.pid
    finally:
        child.terminate()
        child.wait()


def ready(url: str, child: subprocess.Popen[bytes]) -> None:
    """Wait until the service has loaded its model."""
    until = time.monotonic() + LOADING_SECONDS
    while child.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):
                return
        except OSError:  # not there yet, or 503
            time.sleep(0.5)
    sys.exit("the service did not load its model")


def in_use(process: int) -> tuple[float, float]:
    """GiB taken on the device by whoever, and of that process in memory."""
    import torch

    device = 0.0
    if torch.cuda.is_available():
        free, whole = torch.cuda.mem_get_info()
        device = (whole - free) / 2**30
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return device, pages * resource.getpagesize() / 2**30


def release() -> None:
    """Give back what this process has taken on the device and does not use: 130 GiB."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def calls(folder: Path, reference: Reference, shown: list[bytes]) -> dict[str, float]:
    """The service in a process of its own, in turn with theirs: rates, and how its memory moves.

    Returns:
        Pictures a second, medians, and by how much of itself the memory moves over a thousand calls
        once it has its size.
    """
    batch, at_once, _ = LOADS[-1]
    seen: list[tuple[float, float]] = []
    ours, theirs = list[float](), list[float]()
    release()
    with started(folder, batch) as (url, process):
        for first in range(0, GROWING + CALLS, PART):
            found = asked(url, folder / "paintings", 2 * first + 1, PART, at_once)
            ours.append(PART / found["seconds"])
            with reference:
                theirs.append(
                    timed(lambda: [reference.mu(one) for one in shown[:SINGLES]], SINGLES)
                )
            seen.append(in_use(process))
            device, own = seen[-1]
            print(
                f"the service by itself, {first + PART} calls: {ours[-1]:.1f} pictures/s, theirs "
                f"{theirs[-1]:.1f}; {device:.3f} GiB of the device in use, {own:.3f} GiB its own",
                flush=True,
            )
    steady = seen[GROWING // PART - 1 :]
    moved = [max(values) / min(values) - 1 for values in zip(*steady, strict=True) if min(values)]
    print(f"from call {GROWING} to {GROWING + CALLS} its memory moves by at most {max(moved):.3%}")
    middle = statistics.median
    return {"ours": middle(ours), "theirs": middle(theirs), "moved": max(moved)}


def main() -> None:
    """Build, load, compare, measure; print the table and the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tiny", action="store_true", help="a rehearsal on a processor")
    parser.add_argument("--ask", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ask:
        url, pictures, *numbers = args.ask
        print(json.dumps(asyncio.run(ask(url, Path(pictures), *map(int, numbers)))))
        return
    fast = Path("/dev/shm")
    roomy = fast.is_dir() and shutil.disk_usage(fast).free > 40 * 2**30
    with tempfile.TemporaryDirectory(dir=fast if roomy else None) as folder:
        write_paintings(Path(folder) / "paintings")
        shown, others = paintings(Path(folder) / "paintings")
        backend = load(Path(folder), tiny=args.tiny)
        reference = Reference(backend, Path(folder))
        with served(backend, 32) as url:
            print("a random head: ", end="")
            differences(url, reference, 1_000)
            fit_head(backend, others)
        with served(backend, 32) as url:
            largest, spread, share = differences(url, reference, 2_000)
        by_hand(backend, reference, shown)
        rate = rounds(backend, reference, shown, args.rounds)
        print(f"peak {peak():.1f} GiB on the device", flush=True)
        alone = calls(Path(folder), reference, shown)
    for side, value in rate.items():
        print(f"{side:40} {value:7.1f} pictures/s  {value / rate['theirs']:5.2f}×")
    print(
        json.dumps(
            {
                "bench": "hpsv3_h200",
                "ours": round(alone["ours"], 2),
                "theirs": round(alone["theirs"], 2),
                "ratio": round(alone["ours"] / alone["theirs"], 3),
                "unit": "pictures/s",
                "n": GROWING + CALLS,
                "conditions": "tiny model, processor" if args.tiny else "Qwen2-VL-7B, bfloat16",
                "mu_difference": round(largest, 6),
                "mu_spread": round(spread, 4),
                "equal": share <= MOST_DIFFERENCE,
                "memory_moves": round(alone["moved"], 5),
            }
        )
    )


if __name__ == "__main__":
    main()
