"""The page of a trained adapter: what it was asked, what came of it, how to load it. Pure text.

It is for strangers: of the specification it tells what decides the training, and neither addresses
nor names of a cluster's objects nor where on a machine a model lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml
from pydantic import BaseModel

from watercolour.api.part import CLUSTER
from watercolour.api.policy import BUILTIN
from watercolour.api.spec import WatercolourRun
from watercolour.gallery import figures
from watercolour.gallery.words import duration, number, percent
from watercolour.reward import gain

#: Parts of the specification that decide the training.
TOLD = ("seed", "model", "prompts", "recipe", "references", "sft", "trainer")
#: Within them: where something runs, and limits of a machine.
NOT_TOLD = frozenset({"vllm", "endpoint", "cacheClaim", "resources", "image", "processes"})

Row = Mapping[str, float | None]


def write(run: WatercolourRun, step: int, rows: Sequence[Row], strip: str | None) -> str:
    """The page, as Markdown with the front matter that the hub reads.

    Args:
        run: what was trained.
        step: optimizer steps that the adapter has seen.
        rows: metrics.csv.
        strip: name of the file with paintings from first to last step; None if there is none.
    """
    head = yaml.safe_dump(_front_matter(run), sort_keys=False).strip()
    return "\n".join(
        (
            f"---\n{head}\n---\n",
            f"# {run.metadata.name}\n",
            f"A LoRA adapter that paints watercolours: it writes p5.brush sketches. Trained from "
            f"`{shown_model(run)}` for {step} of {run.spec.trainer.steps} steps of GRPO with "
            "Watercolour.\n",
            *([f"![Paintings from the first step to the last]({strip})\n"] if strip else []),
            *_figures(rows),
            "## Use\n",
            _use(run),
            "## Specification\n",
            f"```yaml\n{yaml.safe_dump(told(run), sort_keys=False)}```\n",
        )
    )


def shown_model(run: WatercolourRun) -> str:
    """The policy's id; of a folder its last part alone."""
    name = run.spec.model.id
    return name.rstrip("/").rpartition("/")[2] if name.startswith(("/", ".", "~")) else name


def _on_hub(run: WatercolourRun) -> bool:
    return shown_model(run) == run.spec.model.id and not run.spec.model.id.startswith(BUILTIN)


def _front_matter(run: WatercolourRun) -> dict[str, Any]:
    base = {"base_model": run.spec.model.id} if _on_hub(run) else {}
    tags = ["watercolour", "p5.brush", "grpo", "lora"]
    return {"library_name": "peft", **base, "pipeline_tag": "text-generation", "tags": tags}


def _use(run: WatercolourRun) -> str:
    if not _on_hub(run):
        return (
            "Name this repository in `spec.model.adapter` of a run whose `spec.model.id` is the "
            "same policy.\n"
        )
    return (
        "```python\n"
        "from peft import PeftModel\n"
        "from transformers import AutoModelForCausalLM\n\n"
        f'model = AutoModelForCausalLM.from_pretrained("{run.spec.model.id}", dtype="auto")\n'
        'model = PeftModel.from_pretrained(model, "OWNER/NAME")\n'
        "```\n"
    )


def _figures(rows: Sequence[Row]) -> Iterator[str]:
    """A table of the first and the last fifth; nothing without a step."""
    steps = {int(row["step"] or 0): row for row in rows}
    if not steps:
        return
    ends = gain.fifths(sorted(steps))
    shows = {
        "reward": ("reward", number),
        "reward, adjusted for the draw": ("reward_adjusted", number),
        "passes the gate": ("gate_pass", percent),
        "unscored": ("unscored", percent),
        "seconds a step": ("step_time", duration),
    }
    yield "| | first fifth | last fifth |\n|---|---|---|"
    for words, (column, show) in shows.items():
        means = [show(figures.mean(steps[step].get(column) for step in end)) for end in ends]
        yield f"| {words} | {means[0]} | {means[1]} |"
    yield ""


def told(run: WatercolourRun) -> dict[str, Any]:
    """What of the specification decides the training, as plain data, defaults left out."""
    found = _told(run.spec)
    found = {name: found[name] for name in TOLD if name in found}
    if "model" in found:
        found["model"]["id"] = shown_model(run)
    judge, scorer = run.spec.judge, run.spec.scorer
    return {
        **_plain(found),
        "scorer": {"backend": scorer.backend},
        "judge": {"backend": judge.backend, **({"model": judge.model} if judge.model else {})},
    }


def _told(part: BaseModel) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, info in type(part).model_fields.items():
        value, alias = getattr(part, name), info.alias or name
        if CLUSTER in info.metadata or alias in NOT_TOLD:
            continue
        if value != info.get_default(call_default_factory=True):
            found[alias] = _told(value) if isinstance(value, BaseModel) else value
    return found


def _plain(value: Any) -> Any:
    """Lists for tuples, and of a path its last part."""
    if isinstance(value, BaseModel):
        return _plain(_told(value))
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, str) and value.startswith(("/", "~")):
        return value.rstrip("/").rpartition("/")[2]
    return value
