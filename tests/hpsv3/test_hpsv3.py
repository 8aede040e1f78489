"""The backend hpsv3 on the real package: its scores are the package's own.

Runs in the environment of locks/hpsv3.txt (`make test-hpsv3`).
"""

from __future__ import annotations

import asyncio
import base64
import gc
import importlib
import io
import itertools
import resource
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from PIL import Image
from tests.hpsv3 import model as random_model

from watercolour.api.errors import InputError
from watercolour.score import hpsv3_load
from watercolour.score.app import create_app
from watercolour.score.backend import Batching, Observed, Scored
from watercolour.score.hpsv3 import Hpsv3, patches
from watercolour.score.hpsv3_load import Source
from watercolour.score.pictures import NotAPicture

pytestmark = pytest.mark.hpsv3

PROMPT = "a loose watercolour flower"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    made = tmp_path_factory.mktemp("hpsv3")
    random_model.write_base(made / "base", random_model.TINY)
    weights = random_model.random_weights(made / "base")
    random_model.write_checkpoint(made / "HPSv3.safetensors", weights)
    return made


def source(folder: Path, **more: Any) -> Source:
    path = folder / "HPSv3.safetensors"
    return Source(checkpoint=path, base=str(folder / "base"), dtype="float32", **more)


@pytest.fixture(scope="module")
def backend(folder: Path) -> Hpsv3:
    return hpsv3_load.load(source(folder), lambda _stage, _share: None)


@pytest.fixture(scope="module")
def package(folder: Path) -> Any:
    """The package's inferencer by its own constructor, which wants the base's weights too."""
    transformers: Any = importlib.import_module("transformers")
    yaml: Any = importlib.import_module("yaml")
    hpsv3: Any = importlib.import_module("hpsv3")
    base = folder / "whole"
    shutil.copytree(folder / "base", base)
    config = transformers.AutoConfig.from_pretrained(base)
    transformers.Qwen2VLForConditionalGeneration(config).save_pretrained(base)
    shipped = Path(hpsv3.__file__).parent / "config" / "HPSv3_7B.yaml"
    settings = yaml.safe_load(shipped.read_text())
    settings |= {
        "model_name_or_path": str(base),
        "bf16": False,
        "torch_dtype": "float32",
        "use_cpu": True,
        "gradient_checkpointing": False,
        "report_to": "none",
        "output_dir": str(folder / "out"),
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    return hpsv3.HPSv3RewardInferencer(
        config_path=str(folder / "config.yaml"),
        checkpoint_path=str(folder / "HPSv3.safetensors"),
        device="cpu",
    )


def picture(seed: int, size: tuple[int, int] = (96, 96)) -> bytes:
    chance = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (6, 6, 3), generator=chance, dtype=torch.uint8)
    image = Image.fromarray(pixels.numpy()).resize(size, Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def test_scores_are_the_package_s_own_in_any_batch_and_shape(backend: Hpsv3, package: Any) -> None:
    shown = [picture(1), picture(2), picture(3, (200, 100)), picture(4, (64, 128))]
    with torch.no_grad():
        theirs = [package.reward([Image.open(io.BytesIO(p))], [PROMPT])[0].tolist() for p in shown]
    ours = backend.means([backend.prepare(p, PROMPT) for p in shown])
    alike = backend.means([backend.prepare(p, PROMPT) for p in shown[:2]])
    assert torch.allclose(torch.tensor(ours), torch.tensor(theirs), atol=1e-4)
    assert torch.allclose(torch.tensor(alike), torch.tensor(theirs[:2]), atol=1e-4)
    assert len({round(mu, 3) for mu, _ in ours}) == 4


def test_pixels_are_arranged_as_the_package_arranges_them(backend: Hpsv3) -> None:
    preparer = backend.preparer()
    with Image.open(io.BytesIO(picture(5, (90, 60)))) as image:
        theirs = preparer.inferencer.prepare_batch([image], [PROMPT])["pixel_values"]
        small = preparer.resized(image)
    numpy: Any = importlib.import_module("numpy")
    processor = preparer.inferencer.processor.image_processor
    ours = patches(numpy.asarray(small), processor, torch.float32)
    assert torch.allclose(ours, theirs, atol=1e-5)


async def test_one_bad_picture_harms_no_other_and_each_of_16_gets_its_own(backend: Hpsv3) -> None:
    shown = [picture(n) for n in range(16)]
    async with backend.open(Batching(8, 0.05, 64), Observed()) as at_work:
        found = await asyncio.gather(
            *(at_work.score(p, PROMPT, ()) for p in (*shown, shown[0][:90])),
            return_exceptions=True,
        )
    assert isinstance(found[-1], NotAPicture)
    scored = [one for one in found if isinstance(one, Scored)]
    alone = [backend.means([backend.prepare(p, PROMPT)])[0][0] for p in shown]
    assert [one.mu for one in scored] == pytest.approx(alone, abs=1e-4)


def test_a_checkpoint_of_another_architecture_is_refused_with_both_told(
    folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.safetensors"
    random_model.write_checkpoint(other, {"model.layers.0.mlp.weight": torch.zeros(2, 2)})
    wrong = Source(checkpoint=other, base=str(folder / "base"))
    with pytest.raises(InputError, match=r"found 1 tensors, .* expected 6\d tensors, 2 layers"):
        hpsv3_load.load(wrong, lambda _stage, _share: None)


# The service around it.


@pytest.fixture
async def served(backend: Hpsv3) -> AsyncGenerator[httpx.AsyncClient]:
    """The scorer's application with the loaded model, without a socket between."""
    app = create_app(lambda _report: backend, Batching(8, 0.02, 128))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://scorer") as http:
            # It refuses what comes while it loads.
            while True:
                if (await http.get("/readyz")).status_code == 200:
                    break
                await asyncio.sleep(0.05)
            yield http


async def asked(http: httpx.AsyncClient, painting: bytes) -> float:
    body = {"painting": base64.b64encode(painting).decode(), "prompt": PROMPT}
    reply = await http.post("/v1/score", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()["mu"]


def resident() -> int:
    """Bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


async def test_64_pictures_at_once_each_get_their_own_score(
    backend: Hpsv3, served: httpx.AsyncClient
) -> None:
    shown = [picture(1_000 + n) for n in range(64)]
    alone = [backend.means([backend.prepare(p, PROMPT)])[0][0] for p in shown]
    found = await asyncio.gather(*(asked(served, p) for p in shown))
    # Nearer than any two pictures' scores lie to each other: a neighbour's would not pass.
    near = min(b - a for a, b in itertools.pairwise(sorted(alone))) / 3
    assert near > 0
    assert found == pytest.approx(alone, abs=near, rel=0)


async def test_memory_is_flat_over_1000_calls(served: httpx.AsyncClient) -> None:
    # Every picture is another one: nothing is remembered, everything is worked out.
    numbers = itertools.count(10_000)

    async def calls(count: int) -> int:
        """Resident bytes after so many calls, eight at a time."""
        for _ in range(0, count, 8):
            await asyncio.gather(*(asked(served, picture(next(numbers))) for _ in range(8)))
        gc.collect()
        return resident()

    # What is made once, such as the allocator's pools, is made in the first calls.
    before = await calls(200)
    after = await calls(1_000)
    assert after == pytest.approx(before, rel=0.01), f"{before >> 10} KiB, then {after >> 10} KiB"
