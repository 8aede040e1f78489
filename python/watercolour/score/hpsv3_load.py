"""Loads HPSv3: the package's model and processor around one checkpoint.

The package itself first loads Qwen2-VL-7B-Instruct whole, 16.6 GB, to overwrite every weight of it.
Here only its configuration, tokenizer and image processor are read (12 MB), the checkpoint's header
is compared with the model before a weight is read, and the weights go straight to the device.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import yaml

from watercolour import logs
from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.score import checkpoint
from watercolour.score.backend import Report
from watercolour.score.hpsv3 import Hpsv3, attend_within_pictures

log = logs.get("watercolour.score.hpsv3")

PACKAGE = "1.0.0"
#: glibc's number of the setting (malloc.h), and its own first value.
M_MMAP_THRESHOLD, MAPPED_BYTES = -3, 128 * 1024
CHECKPOINT_ID, CHECKPOINT_FILE = "MizzenAI/HPSv3", "HPSv3.safetensors"
BASE = "Qwen/Qwen2-VL-7B-Instruct"
REWARD_TOKEN = "<|Reward|>"
#: What the published configuration file says of the model; the rest of it is about training.
KEYS = ("output_dim", "reward_token", "rm_head_type", "use_special_tokens")


@dataclass(frozen=True)
class Source:
    """Where the model comes from, and where it goes.

    Attributes:
        checkpoint: a safetensors file; None downloads it from the hub.
        checkpoint_id, revision: hub model and its commit or tag.
        base: folder or hub id of the Qwen2-VL that the checkpoint was made from; its weights are
            not read.
        device: as PyTorch names it; `auto` is the GPU, or the CPU where there is none.
        dtype: of all weights but the head's, which stays in float32.
    """

    checkpoint: Path | None = None
    checkpoint_id: str = CHECKPOINT_ID
    revision: str | None = None
    base: str = BASE
    device: str = "auto"
    dtype: str = "bfloat16"


def load(source: Source, report: Report) -> Hpsv3:
    """The backend.

    Raises:
        InputError: the checkpoint or the base is another model's, or damaged (InvalidCheckpoint).
        InfrastructureError: the package is missing, the hub cannot be reached, or the device lacks
            memory (ScorerUnavailable).
    """
    keep_memory_flat()
    report("importing the package", 0.0)
    inference, trainer = package()
    report("reading the tokenizer", 0.0)
    config, processor = read_base(source.base)
    path = source.checkpoint or _download(source, report)
    report("checking the checkpoint", 0.0)
    published = published_config(inference)
    model = skeleton(trainer, config, processor, published, getattr(torch, source.dtype))
    expected = {name: tuple(t.shape) for name, t in model.state_dict().items()}
    checkpoint.compare(path, checkpoint.shapes(path), expected)
    device = _device(source.device)
    _fill(model, path, device, report)
    _prepare_modules(model)
    inferencer = _inferencer(inference, model, processor, device, published)
    return Hpsv3(inferencer, f"hpsv3-{PACKAGE} {source.dtype} {_fingerprint(path)}")


def keep_memory_flat() -> None:
    """Let the C library give every big block back as soon as it is free.

    Each time that one is freed, glibc raises the size from which blocks are mapped apart, up to
    32 MiB. The tensors of a batch then lie among the small blocks and leave holes: over a thousand
    calls a tiny model's process held 280 MB more than it used, and never the same. A size that is
    set stays. Another C library has no such setting, and needs none.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)


def package() -> tuple[Any, Any]:
    """The package's inference module and the module of its model.

    Raises:
        InfrastructureError: it is not installed, or of another version (ScorerUnavailable).
    """
    try:
        found = importlib.metadata.version("hpsv3")
        if found != PACKAGE:
            raise ImportError(f"hpsv3 {found} is installed, {PACKAGE} is needed")
        inference = importlib.import_module("hpsv3.inference")
        return inference, importlib.import_module("hpsv3.model.qwen2vl_trainer")
    except ImportError as error:  # a missing distribution is one too
        raise InfrastructureError(
            Reason.SCORER_UNAVAILABLE,
            f"the backend hpsv3 cannot be imported: {error}.",
            remedy="Install locks/hpsv3.txt into an environment of its own, see docs/scorer.md.",
        ) from error


def published_config(inference: Any) -> dict[str, Any]:
    """What the package's configuration file says of the model."""
    text = (Path(inference.__file__).parent / "config" / "HPSv3_7B.yaml").read_text()
    whole: Mapping[str, Any] = yaml.safe_load(text)
    return {key: whole[key] for key in KEYS}


def read_base(base: str) -> tuple[Any, Any]:
    """Configuration and processor, with the token at whose place the head reads.

    Raises:
        InputError: they cannot be read, or are another model's (InvalidCheckpoint).
    """
    transformers: Any = importlib.import_module("transformers")
    try:
        config = transformers.AutoConfig.from_pretrained(base)
        if config.model_type != "qwen2_vl":
            raise _wrong_base(base, f"it is a {config.model_type}, not a qwen2_vl")
        processor = transformers.AutoProcessor.from_pretrained(base, padding_side="right")
    # A folder or a hub without the files ends in one of these.
    except (OSError, ValueError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise _wrong_base(base, f"it cannot be read ({str(error).splitlines()[0]})") from error
    processor.tokenizer.add_special_tokens({"additional_special_tokens": [REWARD_TOKEN]})
    return config, processor


def _wrong_base(base: str, why: str) -> InputError:
    return InputError(
        Reason.INVALID_CHECKPOINT,
        f"--base={base}: {why}.",
        remedy=f"Name a folder with the configuration, tokenizer and preprocessor of {BASE}, or "
        "let the scorer reach the hub.",
        field="base",
        value=base,
    )


def _download(source: Source, report: Report) -> Path:
    hub: Any = importlib.import_module("huggingface_hub")
    report(f"downloading {source.checkpoint_id}", 0.0)
    try:
        return Path(
            hub.hf_hub_download(source.checkpoint_id, CHECKPOINT_FILE, revision=source.revision)
        )
    # The hub's own errors are of these kinds.
    except (OSError, ValueError) as error:
        raise InfrastructureError(
            Reason.SCORER_UNAVAILABLE,
            f"{CHECKPOINT_FILE} of {source.checkpoint_id} cannot be downloaded: "
            f"{str(error).splitlines()[0]}.",
            remedy="Allow downloads, or name a file with --checkpoint.",
        ) from error


def skeleton(
    trainer: Any, config: Any, processor: Any, published: dict[str, Any], dtype: torch.dtype
) -> Any:
    """The package's model without weights, and with the buffers that no checkpoint holds."""
    from accelerate import init_empty_weights

    config.vocab_size = len(processor.tokenizer)
    config.use_cache = False
    config.tokenizer_padding_side = processor.tokenizer.padding_side
    config.pad_token_id = processor.tokenizer.pad_token_id
    with init_empty_weights(include_buffers=False):
        model = trainer.Qwen2VLRewardModelBT._from_config(
            config,
            attn_implementation="sdpa",
            output_dim=published["output_dim"],
            reward_token=published["reward_token"],
            rm_head_type=published["rm_head_type"],
            special_token_ids=processor.tokenizer.convert_tokens_to_ids([REWARD_TOKEN]),
        )
    # As the package does: it casts the buffers of the rotary positions too, and the published
    # scores were made with those.
    model.to(dtype)
    model.rm_head.to(torch.float32)
    return model.eval()


def _fill(model: Any, path: Path, device: torch.device, report: Report) -> None:
    """Read the weights to the device. The head of the language model is left out: 1.1 GB."""
    # Its constructor has no annotations.
    safe_open: Any = importlib.import_module("safetensors").safe_open
    model.lm_head = torch.nn.Identity()
    wanted: dict[str, torch.Tensor] = model.state_dict()
    read: dict[str, torch.Tensor] = {}
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            for number, (name, meta) in enumerate(wanted.items()):
                report("reading weights", number / len(wanted))
                read[name] = file.get_tensor(name).to(meta.dtype)
    except torch.OutOfMemoryError as error:
        raise InfrastructureError(
            Reason.SCORER_UNAVAILABLE,
            f"the device {device} has not enough memory for HPSv3: {str(error).splitlines()[0]}.",
            remedy="Give it a GPU with 24 GB of its own.",
        ) from error
    model.load_state_dict(read, strict=True, assign=True)
    model.to(device)


def _prepare_modules(model: Any) -> None:
    qwen: Any = importlib.import_module("transformers.models.qwen2_vl.modeling_qwen2_vl")
    for block in model.visual.blocks:
        stock = block.attn
        stock.forward = partial(attend_within_pictures, stock, qwen.apply_rotary_pos_emb_vision)
    # The package leaves this cast to autocast, which exists on a GPU alone.
    model.rm_head.register_forward_pre_hook(_float32)


def _float32(_: Any, args: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(argument.float() for argument in args)


def _inferencer(
    inference: Any, model: Any, processor: Any, device: torch.device, published: dict[str, Any]
) -> Any:
    """The package's inferencer, past its constructor, which would load the base's weights."""
    kind = inference.HPSv3RewardInferencer
    found = kind.__new__(kind)
    found.model, found.processor, found.device = model, processor, device
    found.use_special_tokens = published["use_special_tokens"]
    return found


def _device(wanted: str) -> torch.device:
    if wanted != "auto":
        return torch.device(wanted)
    if torch.cuda.is_available():
        return torch.device("cuda", 0)
    log.warning("no GPU is seen: a processor is some hundred times slower")
    return torch.device("cpu")


def _fingerprint(path: Path) -> str:
    """Twelve digits that tell checkpoints apart: of the header and of the file's last 16 MB."""
    tail = 16 * 2**20
    with path.open("rb") as file:
        size = path.stat().st_size
        header = file.read(8)
        digest = hashlib.sha256(header + file.read(int.from_bytes(header, "little")))
        file.seek(max(0, size - tail))
        digest.update(file.read(tail))
    return digest.hexdigest()[:12]
