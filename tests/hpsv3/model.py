"""Random HPSv3 models: the true architecture, tiny for a processor or full for a GPU.

No weights and no tokenizer of Qwen's are here. The tokenizer is made from the package's own
instruction, so that a question has as many tokens as it has words and signs, and its special tokens
have the true names and, at full size, the true numbers.
"""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

import torch

from watercolour.score import hpsv3_load

#: As published: https://huggingface.co/Qwen/Qwen2-VL-7B-Instruct/blob/main/config.json
FULL: dict[str, Any] = {
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "num_heads": 16},
}
TINY: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
    "vision_config": {"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 2},
}
#: Entries of Qwen2's vocabulary before its special tokens.
VOCABULARY = 151_643
SPECIAL = (
    "endoftext im_start im_end object_ref_start object_ref_end box_start box_end quad_start "
    "quad_end vision_start vision_end vision_pad image_pad video_pad"
)
#: Qwen2-VL's, for one picture and one text.
TEMPLATE = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}"
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_base(folder: Path, shape: dict[str, Any]) -> None:
    """A folder as the hub has it for Qwen2-VL: configuration, tokenizer, image processor."""
    transformers: Any = importlib.import_module("transformers")
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary, merges = _words(VOCABULARY if shape is FULL else 0)
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("\n".join(" ".join(pair) for pair in merges))
    names = [f"<|{name}|>" for name in SPECIAL.split()]
    tokenizer = transformers.Qwen2TokenizerFast(
        str(folder / "vocab.json"),
        str(folder / "merges.txt"),
        chat_template=TEMPLATE,
        additional_special_tokens=names[1:],
        unk_token=names[0],
        eos_token=names[2],
        pad_token=names[0],
    )
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in names}
    config = transformers.Qwen2VLConfig(
        **shape,
        vocab_size=len(tokenizer),
        max_window_layers=shape["num_hidden_layers"],
        rms_norm_eps=1e-6,
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
    )
    config.save_pretrained(folder)
    images = transformers.Qwen2VLImageProcessor(min_pixels=3136, max_pixels=12845056)
    transformers.Qwen2VLProcessor(images, tokenizer, chat_template=TEMPLATE).save_pretrained(folder)


def _words(fill: int) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """A byte-level vocabulary that knows the instruction's words, filled up to a size."""
    tokenizers: Any = importlib.import_module("tokenizers")
    collator: Any = importlib.import_module("hpsv3.dataset.data_collator_qwen")
    text = collator.INSTRUCTION + collator.prompt_with_special_token
    learner = tokenizers.ByteLevelBPETokenizer()
    learner.train_from_iterator([text] * 2, vocab_size=8_000, min_frequency=2, show_progress=False)
    model = json.loads(learner.to_str())["model"]
    vocabulary: dict[str, int] = dict(model["vocab"])
    for number in range(len(vocabulary), fill):
        vocabulary[f"<|unused {number}|>"] = number
    pairs = (m.split(" ") if isinstance(m, str) else m for m in model["merges"])
    return vocabulary, [(left, right) for left, right in pairs]


def random_weights(base: Path, *, seed: int = 0, device: str = "cpu") -> dict[str, torch.Tensor]:
    """Every tensor of the model, by chance: each layer keeps the size of what goes through it."""
    inference, trainer = hpsv3_load.package()
    config, processor = hpsv3_load.read_base(str(base))
    published = hpsv3_load.published_config(inference)
    model = hpsv3_load.skeleton(trainer, config, processor, published, torch.bfloat16)
    chance = torch.Generator(device).manual_seed(seed)
    return {name: _random(name, meta, chance, device) for name, meta in model.state_dict().items()}


def _random(name: str, meta: torch.Tensor, chance: torch.Generator, device: str) -> torch.Tensor:
    if meta.ndim == 1:
        scale = 0.0 if name.endswith("bias") else 1.0
        return torch.full(meta.shape, scale, dtype=meta.dtype, device=device)
    found = torch.empty(meta.shape, dtype=meta.dtype, device=device).normal_(generator=chance)
    # What each layer adds is small, as in a trained model, or rounding would grow from layer to
    # layer until nothing else is left.
    adds = ("o_proj", "down_proj", "attn.proj", "fc2")
    gain = 0.25 if any(part in name for part in adds) else 1.0
    fan_in = 1 if "embed_tokens" in name else math.prod(meta.shape[1:])
    return found * (gain / math.sqrt(fan_in))


def write_checkpoint(path: Path, weights: dict[str, torch.Tensor]) -> None:
    """The file as the hub has it."""
    safetensors: Any = importlib.import_module("safetensors.torch")
    safetensors.save_file(weights, path)
