"""Rules between the parts of a specification. Pure: a spec in, problems out.

What a recipe's name means belongs to the reward, so rules on weights look at weights that stand in
the specification itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from watercolour.api import engines, pod_templates
from watercolour.api.policy import BUILTIN
from watercolour.api.problems import ABSENT, Problem
from watercolour.api.terms import ASKS, Server
from watercolour.api.trainer import decoding

if TYPE_CHECKING:
    from watercolour.api.part import Resources
    from watercolour.api.spec import RunSpec

#: Fields of TRL's GRPOConfig that follow from fields of the specification.
OWNED_BY_SPEC = {
    "num_generations": "spec.trainer.groupSize",
    "max_steps": "spec.trainer.steps",
    "learning_rate": "spec.trainer.learningRate",
    "lr_scheduler_type": "spec.trainer.lrScheduler",
    "warmup_steps": "spec.trainer.warmupSteps",
    "scale_rewards": "spec.trainer.scaleRewards",
    "beta": "spec.trainer.beta",
    "temperature": "spec.trainer.sampling.temperature",
    "top_p": "spec.trainer.sampling.topP",
    "top_k": "spec.trainer.sampling.topK",
    "min_p": "spec.trainer.sampling",
    "repetition_penalty": "spec.trainer.sampling",
    "generation_kwargs": "spec.trainer.sampling",
    "max_completion_length": "spec.trainer.sampling.maxCompletionTokens",
    "save_steps": "spec.trainer.checkpointEvery",
    "save_total_limit": "spec.trainer.keepCheckpoints",
    "seed": "spec.seed",
    "use_vllm": "spec.trainer.engine",
    "vllm_mode": "spec.trainer.vllm",
    "vllm_model_impl": "spec.trainer.vllm",
    "vllm_enable_sleep_mode": "spec.trainer.vllm",
    "vllm_structured_outputs_regex": "spec.trainer.vllm",
    "vllm_server_base_url": "spec.trainer.vllm",
    "vllm_server_host": "spec.trainer.vllm",
    "vllm_server_port": "spec.trainer.vllm",
    "vllm_server_timeout": "spec.trainer.vllm",
    "vllm_group_port": "spec.trainer.vllm",
    "vllm_gpu_memory_utilization": "spec.trainer.vllm",
    "vllm_max_model_length": "spec.trainer.vllm",
    "vllm_tensor_parallel_size": "spec.trainer.vllm",
    "output_dir": "spec.artifacts.path",
    "report_to": "spec.tracking",
    "gradient_accumulation_steps": "spec.trainer.rolloutsPerStep",
    "steps_per_generation": "spec.trainer.rolloutsPerStep",
    "generation_batch_size": "spec.trainer.rolloutsPerStep",
    "num_train_epochs": "spec.trainer.steps",
    "model_init_kwargs": "spec.model",
    "chat_template_kwargs": "spec.model.chatTemplateKwargs",
    "reward_weights": "spec.recipe.weights",
    "reward_funcs": "spec.recipe",
    "shuffle_dataset": "spec.prompts.subjects",
    "use_transformers_continuous_batching": "spec.trainer.engine",
    "transformers_continuous_batching_config": "spec.trainer.engine",
    "use_transformers_paged": "spec.trainer.engine",
    "save_strategy": "spec.trainer.checkpointEvery",
    "resume_from_checkpoint": "spec.trainer.resume",
    "fsdp": "spec.trainer.fsdp",
    "fsdp_config": "spec.trainer.fsdp",
}

#: Fields of GRPOConfig that a rule here depends on, and their types.
LOOKED_AT: Mapping[str, type[bool] | type[str]] = {
    "vllm_importance_sampling_correction": bool,
    "vllm_importance_sampling_mode": str,
}

#: What a renderer's pod template may say: placement, never security or network.
RENDERER_TEMPLATE_FIELDS = pod_templates.PLACEMENT

#: Tokens below which a model that thinks aloud has none left for the sketch.
LEAST_THINKING_TOKENS = 1024


def problems(spec: RunSpec) -> Iterator[Problem]:
    """Every problem between the parts, with fields relative to ``spec``."""
    yield from _model(spec)
    yield from _prompts(spec)
    yield from _recipe(spec)
    yield from _references(spec)
    yield from _trainer(spec)
    yield from _sampling(spec)
    yield from engines.problems(spec)
    yield from _renderers(spec)
    yield from _env(spec)
    yield from _scorer(spec)
    yield from _judge(spec)
    yield from _cluster(spec)


def _model(spec: RunSpec) -> Iterator[Problem]:
    name = spec.model.id
    is_folder = name.startswith((".", "/", "~"))
    if not is_folder and (name.count("/") > 1 or name.endswith("/")):
        yield Problem(
            "model.id",
            name,
            "neither a folder nor owner/name on the hub",
            f"Write ./{name.rstrip('/')} for a folder.",
        )
    if is_folder and spec.model.revision:
        yield Problem(
            "model.revision", spec.model.revision, "model.id is a folder", "Leave revision out."
        )


def _prompts(spec: RunSpec) -> Iterator[Problem]:
    prompts = spec.prompts
    default = type(prompts).model_fields["subjects"].default
    if prompts.dataset and prompts.subjects != default:
        yield Problem(
            "prompts.dataset",
            prompts.dataset.id,
            "subjects are given too",
            "Leave one of prompts.subjects and prompts.dataset out.",
        )
    tokens = spec.trainer.sampling.max_completion_tokens
    if prompts.thinking and tokens < LEAST_THINKING_TOKENS:
        yield Problem(
            "trainer.sampling.maxCompletionTokens",
            tokens,
            "leaves no room for a sketch after prompts.thinking=true",
            f"Set it to {LEAST_THINKING_TOKENS} or more, or set prompts.thinking to false.",
        )


def _references(spec: RunSpec) -> Iterator[Problem]:
    references = spec.references
    default = type(references).model_fields["pool"].default
    sources = {
        "pool": None if references.pool == default else references.pool,
        "dataset": references.dataset,
        "claim": references.claim,
        "configMap": references.config_map,
    }
    given = [name for name, value in sources.items() if value]
    if len(given) > 1:
        yield Problem(
            f"references.{given[1]}",
            sources[given[1]],
            f"references.{given[0]} is given too",
            "Keep one of pool, dataset, claim and configMap.",
        )


def _trainer(spec: RunSpec) -> Iterator[Problem]:
    trainer = spec.trainer
    rollouts, group = trainer.rollouts_per_step, trainer.group_size
    if rollouts % group:
        fit = max(1, round(rollouts / group)) * group
        yield Problem(
            "trainer.rolloutsPerStep",
            rollouts,
            f"not a multiple of groupSize={group}",
            f"Set rolloutsPerStep to {fit}.",
        )
    processes = trainer.replicas * trainer.processes
    if rollouts % processes:
        yield Problem(
            "trainer.rolloutsPerStep",
            rollouts,
            f"not a multiple of replicas={trainer.replicas} times processes={trainer.processes}",
            "Let each process have the same number of rollouts.",
        )
    for name, kind in LOOKED_AT.items():
        if not isinstance(trainer.grpo.get(name, kind()), kind):
            yield Problem(
                f"trainer.grpo.{name}",
                trainer.grpo[name],
                f"not {'text' if kind is str else 'true or false'}",
                f"Give {'text' if kind is str else 'true or false'}.",
            )
    reuse = trainer.grpo.get("num_iterations", 1)
    if not isinstance(reuse, int) or isinstance(reuse, bool) or reuse < 1:
        yield Problem(
            "trainer.grpo.num_iterations",
            reuse,
            "not a whole number of 1 or more",
            "Give the optimizer steps that learn from one generation; 1 is TRL's default.",
        )
    elif trainer.checkpoint_every % reuse:
        yield Problem(
            "trainer.checkpointEvery",
            trainer.checkpoint_every,
            f"no multiple of trainer.grpo.num_iterations={reuse}, and a run cannot go on between "
            "the steps of one generation",
            f"Set it to {-(-trainer.checkpoint_every // reuse) * reuse}.",
        )
    for name in sorted(trainer.grpo.keys() & OWNED_BY_SPEC.keys()):
        yield Problem(
            f"trainer.grpo.{name}",
            trainer.grpo[name],
            f"set by {OWNED_BY_SPEC[name]}",
            f"Set {OWNED_BY_SPEC[name]} instead.",
        )


def _sampling(spec: RunSpec) -> Iterator[Problem]:
    """vLLM's correction multiplies a sequence's loss by the probability mass that was kept.

    With truncated sampling that is about 0 for a sketch of usual length, and wildly different from
    one rollout to the next, so the run would learn from noise. So it is with a bias, since the
    server tells the probabilities after it.
    """
    trainer = spec.trainer
    sampling = decoding(trainer.sampling, builtin=spec.model.id.startswith(BUILTIN))
    corrected = trainer.grpo.get("vllm_importance_sampling_correction", True) is not False
    mode = str(trainer.grpo.get("vllm_importance_sampling_mode", "sequence_mask"))
    if trainer.engine != "vllm" or not corrected or mode.startswith("token"):
        return
    remedy = (
        "Set topP to 1 and topK to 0, or trainer.grpo.vllm_importance_sampling_correction to false."
    )
    fault = f"truncated sampling with engine=vllm and the {mode} correction ruins the loss"
    if sampling.top_p < 1:
        yield Problem("trainer.sampling.topP", sampling.top_p, fault, remedy)
    if sampling.top_k > 0:
        yield Problem("trainer.sampling.topK", sampling.top_k, fault, remedy)
    for text, bias in trainer.sampling.logit_bias.items():
        yield Problem(
            f"trainer.sampling.logitBias.{text}",
            bias,
            f"a bias with engine=vllm and the {mode} correction ruins the loss",
            "Leave logitBias out, or set trainer.grpo.vllm_importance_sampling_correction to "
            "false.",
        )


def _renderers(spec: RunSpec) -> Iterator[Problem]:
    renderers, scaling, canvas = spec.renderers, spec.renderers.scaling, spec.renderers.canvas
    if scaling.min > scaling.max:
        yield Problem(
            "renderers.scaling.min",
            scaling.min,
            f"above max={scaling.max}",
            f"Set min to {scaling.max} or less, or raise max.",
        )
    if renderers.replicas is not None and scaling.mode != "External":
        yield Problem(
            "renderers.replicas",
            renderers.replicas,
            f"scaling.mode is {scaling.mode}",
            "Leave replicas out, or set renderers.scaling.mode to External.",
        )
    if renderers.replicas is None and scaling.mode == "External":
        yield Problem(
            "renderers.replicas",
            ABSENT,
            "scaling.mode is External, whose scale needs a number to begin with",
            "Set replicas to it, such as 0.",
        )
    if canvas.min_side > canvas.max_side:
        yield Problem(
            "renderers.canvas.minSide",
            canvas.min_side,
            f"above maxSide={canvas.max_side}",
            f"Set minSide to {canvas.max_side} or less, or raise maxSide.",
        )


def _env(spec: RunSpec) -> Iterator[Problem]:
    env = spec.env
    demands = {
        "trainer.rolloutsPerStep": spec.trainer.rollouts_per_step,
        "trainer.guards.probes": spec.trainer.guards.probes,
    }
    largest = max(demands, key=lambda name: demands[name])
    if env.sessions < demands[largest]:
        yield Problem(
            "env.sessions",
            env.sessions,
            f"below {largest}={demands[largest]}, so the environment would refuse the rest",
            f"Set sessions to {demands[largest]} or more.",
        )
    deadline = spec.renderers.deadline_seconds
    if env.message_timeout_seconds <= deadline:
        yield Problem(
            "env.messageTimeoutSeconds",
            env.message_timeout_seconds,
            f"not above renderers.deadlineSeconds={deadline:g}, so clients would give up first",
            f"Set messageTimeoutSeconds to {5 * deadline:g}, or lower deadlineSeconds.",
        )


def _recipe(spec: RunSpec) -> Iterator[Problem]:
    if spec.recipe.kl is not None and spec.trainer.beta > 0:
        yield Problem(
            "trainer.beta",
            spec.trainer.beta,
            "recipe.kl sets the same weight",
            "Keep one of trainer.beta and recipe.kl.",
        )


def _unanswered(spec: RunSpec, server: Server) -> str:
    """A term with a weight in the specification itself that needs the server, as path and value."""
    for place, weights in _weights(spec):
        for term in ASKS[server]:
            if weights.get(term, 0) > 0:
                return f"{place}.{term}={weights[term]:g}"
    return ""


def _weights(spec: RunSpec) -> Iterator[tuple[str, Mapping[str, float]]]:
    """All weights of the specification itself, each with its place."""
    recipe = spec.recipe
    if recipe.weights is not None:
        yield "recipe.weights", recipe.weights
    stages = recipe.schedule.stages if recipe.schedule else ()
    for number, stage in enumerate(stages):
        yield f"recipe.schedule.stages[{number}].weights", stage.weights


def _scorer(spec: RunSpec) -> Iterator[Problem]:
    scorer = spec.scorer
    if scorer.backend == "none" and (term := _unanswered(spec, "scorer")):
        yield Problem(
            "scorer.backend",
            scorer.backend,
            f"{term} needs a scorer",
            "Set backend to embedded or hpsv3, or the weight to 0.",
        )
    if scorer.backend == "vlm-mark" and not scorer.endpoint and spec.judge.backend != "openai":
        yield Problem(
            "scorer.endpoint",
            ABSENT,
            "backend=vlm-mark needs a vision-language model",
            "Name its base URL, or set judge.backend to openai.",
        )
    if scorer.checkpoint and bool(scorer.checkpoint.claim) == bool(scorer.checkpoint.id):
        yield Problem(
            "scorer.checkpoint",
            ABSENT,
            "needs exactly one of claim and id",
            "Name the claim that holds the weights, or the hub model.",
        )


def _judge(spec: RunSpec) -> Iterator[Problem]:
    judge = spec.judge
    if judge.backend == "none" and (term := _unanswered(spec, "judge")):
        yield Problem(
            "judge.backend",
            judge.backend,
            f"{term} needs a judge",
            "Set backend to embedded or openai, or the weight to 0.",
        )
    if judge.backend == "openai" and not (judge.endpoint or judge.deploy):
        yield Problem(
            "judge.endpoint",
            ABSENT,
            "backend=openai needs an endpoint",
            "Name the base URL of an OpenAI-compatible API, such as http://127.0.0.1:8000/v1.",
        )
    if judge.endpoint and judge.deploy:
        yield Problem(
            "judge.deploy",
            judge.deploy.model,
            "judge.endpoint is given too",
            "Keep one of endpoint and deploy.",
        )
    if judge.fallback == "embedded" and spec.scorer.backend != "embedded":
        yield Problem(
            "judge.fallback",
            judge.fallback,
            f"scorer.backend is {spec.scorer.backend}, and only the embedded scorer judges as well",
            "Set scorer.backend to embedded, or fallback to none.",
        )


def _cluster(spec: RunSpec) -> Iterator[Problem]:
    for component in ("trainer", "env"):
        for entry in getattr(spec.egress, component):
            if entry != "all" and not _is_cidr(entry):
                yield Problem(
                    f"egress.{component}", entry, "not a CIDR", "Write 203.0.113.0/24, or all."
                )
    for component in ("trainer", "renderers", "env", "scorer"):
        yield from _resources(f"{component}.resources", getattr(spec, component).resources)
    if spec.judge.deploy:
        yield from _resources("judge.deploy.resources", spec.judge.deploy.resources)
    for component, template in spec.pod_templates:
        yield from pod_templates.problems(component, template)


def _resources(field: str, resources: Resources) -> Iterator[Problem]:
    for name, limit in resources.limits.items():
        request = resources.requests.get(name)
        if request is not None and _exact(request) > _exact(limit):
            yield Problem(
                f"{field}.requests.{name}",
                request,
                f"above its limit {limit}",
                f"Set it to {limit} or less.",
            )


def quantity(text: str) -> float:
    """A Kubernetes quantity as a number: ``500m`` is 0.5, ``1Ki`` is 1024."""
    return float(_exact(text))


def _exact(text: str) -> Decimal:
    powers = {"k": 1, "M": 2, "G": 3, "T": 4, "P": 5}
    if text.endswith("i"):
        return Decimal(text[:-2]) * 1024 ** powers[text[-2].replace("K", "k")]
    if text.endswith("m"):
        return Decimal(text[:-1]) / 1000
    if text[-1] in powers:
        return Decimal(text[:-1]) * 1000 ** powers[text[-1]]
    return Decimal(text)


def _is_cidr(text: str) -> bool:
    """Whether it is a network's own address and the number of its bits, in digits."""
    import ipaddress

    address, _, bits = text.partition("/")
    if not bits.isdecimal() or not bits.isascii() or (bits != "0" and bits.startswith("0")):
        return False
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        return False
    return "%" not in address and getattr(network.network_address, "ipv4_mapped", None) is None
