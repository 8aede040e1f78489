"""Specifications that break a rule or keep all, for the tests of every reader of one."""

from __future__ import annotations

from typing import Any

STAGE: dict[str, Any] = {"step": 0, "weights": {"gate": 0.5, "length": 0.5}}
TIERS: dict[str, Any] = {"step": 0, "tierShares": {"love": 1.0, "okay": 0.0}}

SERVER: dict[str, Any] = {"endpoint": "http://v:8000"}
#: A base model that two processes hold together.
PARTED: dict[str, Any] = {
    "engine": "vllm",
    "vllm": SERVER,
    "sampling": {"topP": 1.0, "topK": 0},
    "processes": 2,
    "fsdp": True,
}

#: Each: the specification, and the whole message on one machine.
REFUSALS: list[tuple[Any, str]] = [
    # One field.
    ({"trainer": {"steps": 0}}, "spec.trainer.steps=0: below 1. Set it to 1 or more."),
    (
        {"trainer": {"steps": "3"}},
        'spec.trainer.steps="3": text, not a whole number. Write 3 without quotes.',
    ),
    (
        {"trainer": {"steps": True}},
        "spec.trainer.steps=true: not a whole number. Give a whole number.",
    ),
    (
        {"trainer": {"steps": "many"}},
        "spec.trainer.steps=many: not a whole number. Give a whole number.",
    ),
    (
        {"trainer": {"learningRate": 0}},
        "spec.trainer.learningRate=0: not above 0. Set it above 0.",
    ),
    (
        {"trainer": {"learningRate": float("inf")}},
        "spec.trainer.learningRate=inf: not a finite number. "
        "Give a number that is neither infinite nor NaN.",
    ),
    (
        {"trainer": {"lora": {"dropout": 1.5}}},
        "spec.trainer.lora.dropout=1.5: above 1. Set it to 1 or less.",
    ),
    (
        {"renderers": {"size": 2000}},
        "spec.renderers.size=2000: above 1024. Set it to 1024 or less.",
    ),
    (
        {"prompts": {"subjects": []}},
        "spec.prompts.subjects=[]: has 0 entries, needs 1. Give at least 1.",
    ),
    (
        {"prompts": {"subjects": ["an iris", " "]}},
        'spec.prompts.subjects[1]=" ": not one line of text. '
        "Write at least one character, and no line break.",
    ),
    (
        {"prompts": {"thinking": "no"}},
        "spec.prompts.thinking=no: not true or false. Give true or false.",
    ),
    (
        {"scorer": {"backend": "hps"}},
        "spec.scorer.backend=hps: not one of embedded, hpsv3, vlm-mark, none. Did you mean hpsv3?",
    ),
    (
        {"renderers": {"networkCanary": False}},
        "spec.renderers.networkCanary=false: YAML reads Off without quotes as false. "
        'Write "Off" in quotes.',
    ),
    ({"trainer": 5}, "spec.trainer=5: not a mapping of fields. Give a mapping of fields."),
    (
        {"recipe": {"gate": {"allow": 5}}},
        "spec.recipe.gate.allow=5: not a list. Give a list.",
    ),
    (
        {"recipe": {"gate": {"allow": ["fill", 3]}}},
        "spec.recipe.gate.allow[1]=3: not text. Give text; quote what YAML takes for a number.",
    ),
    (
        {"queueName": "My_Queue"},
        "spec.queueName=My_Queue: not a Kubernetes name. Use 1 to 63 small letters, digits and "
        "dashes, with a letter or digit at both ends.",
    ),
    (
        {"scorer": {"endpoint": "localhost:8000"}},
        "spec.scorer.endpoint=localhost:8000: not an HTTP address. "
        "Write it as http://HOST:PORT/PATH, without a user or password.",
    ),
    (
        {"env": {"resources": {"limits": {"memory": "4GB"}}}},
        "spec.env.resources.limits.memory=4GB: not a Kubernetes quantity. "
        "Write it as 500m, 2 or 16Gi.",
    ),
    (
        {"references": {"dataset": "owner/pool"}},
        "spec.references.dataset=owner/pool: not a pinned data set. Write it as owner/name@COMMIT.",
    ),
    (
        {"renderers": {"image": "two words"}},
        "spec.renderers.image=two words: not a container image. "
        "Write it as registry/name:tag or name@sha256:DIGEST.",
    ),
    # Names.
    ({"trainer": {"stepz": 5}}, "spec.trainer.stepz=5: no such field. Did you mean steps?"),
    (
        {"trainer": {"group_size": 4}},
        "spec.trainer.group_size=4: no such field. Did you mean groupSize?",
    ),
    (
        {"groupSize": 4},
        "spec.groupSize=4: no such field. Did you mean spec.trainer.groupSize?",
    ),
    (
        {"references": {"tierShares": {"wonderful": 1}}},
        "spec.references.tierShares.wonderful=1: no such field. Fields here: love, okay, meh.",
    ),
    (
        {"prompts": {"dataset": {}}},
        "spec.prompts.dataset.id: missing. Add id: A folder, a file (.txt one a line, .jsonl, "
        ".parquet) or hub id.",
    ),
    # Several fields of one part.
    (
        {"trainer": {"rolloutsPerStep": 10}},
        "spec.trainer.rolloutsPerStep=10: not a multiple of groupSize=8. Set rolloutsPerStep to 8.",
    ),
    (
        {"trainer": {"rolloutsPerStep": 2}},
        "spec.trainer.rolloutsPerStep=2: not a multiple of groupSize=8. Set rolloutsPerStep to 8.",
    ),
    (
        {"recipe": {"weights": {"gate": 0.5, "quality": 0.95}}},
        "spec.recipe.weights: gate=0.5, quality=0.95 sum to 1.45, not to 1. "
        "Lower one or more of them by 0.45 in all.",
    ),
    (
        {"recipe": {"weights": {}}},
        "spec.recipe.weights={}: has 0 entries, needs 1. Give at least 1.",
    ),
    (
        {"recipe": {"weights": {"gate": 2, "quality": 0}}},
        "spec.recipe.weights.gate=2: above 1. Set it to 1 or less.",
    ),
    (
        {"recipe": {"weights": {"Quality": 1}}},
        "spec.recipe.weights.Quality=1: not a term's name. Use 1 to 40 small letters, digits and "
        "underscores, beginning with a letter.",
    ),
    (
        {"recipe": {"schedule": {"stages": [{"step": 9, "weights": {"gate": 0.4}}]}}},
        "spec.recipe.schedule.stages[0].weights: gate=0.4 sum to 0.4, not to 1. "
        "Raise one or more of them by 0.6 in all.",
    ),
    (
        {"recipe": {"schedule": {"stages": [STAGE | {"step": 9}, STAGE | {"step": 9}]}}},
        "spec.recipe.schedule.stages[1].step=9: not above the step 9 of the stage before. "
        "Order stages by rising step.",
    ),
    (
        {"recipe": {"schedule": {"stages": []}}},
        "spec.recipe.schedule.stages=[]: has 0 entries, needs 1. Give at least 1.",
    ),
    (
        {"recipe": {"curriculum": [TIERS | {"step": 9}, TIERS | {"step": 3}]}},
        "spec.recipe.curriculum[1].step=3: not above the step 9 of the stage before. "
        "Order curriculum by rising step.",
    ),
    (
        {"recipe": {"failedGate": 0.5}},
        "spec.recipe.failedGate=0.5: above 0. Set it to 0 or less.",
    ),
    (
        {"references": {"tierShares": {"love": 0.25}}},
        "spec.references.tierShares: love=0.25, okay=0.5, meh=0 sum to 0.75, not to 1. "
        "Raise one or more of them by 0.25 in all.",
    ),
    # Between the parts.
    (
        {"env": {"sessions": 8}},
        "spec.env.sessions=8: below trainer.rolloutsPerStep=16, so the environment would refuse "
        "the rest. Set sessions to 16 or more.",
    ),
    (
        {"trainer": {"guards": {"probes": 40}}},
        "spec.env.sessions=32: below trainer.guards.probes=40, so the environment would refuse "
        "the rest. Set sessions to 40 or more.",
    ),
    (
        {"env": {"messageTimeoutSeconds": 60}},
        "spec.env.messageTimeoutSeconds=60: not above renderers.deadlineSeconds=60, so clients "
        "would give up first. Set messageTimeoutSeconds to 300, or lower deadlineSeconds.",
    ),
    (
        {
            "model": {"id": "a/b"},
            "trainer": {"engine": "vllm", "vllm": SERVER, "sampling": {"topK": 0}},
        },
        "spec.trainer.sampling.topP=0.95: truncated sampling with engine=vllm and the "
        "sequence_mask correction ruins the loss. Set topP to 1 and topK to 0, or "
        "trainer.grpo.vllm_importance_sampling_correction to false.",
    ),
    (
        {
            "model": {"id": "a/b"},
            "trainer": {"engine": "vllm", "vllm": SERVER, "sampling": {"topP": 1.0}},
        },
        "spec.trainer.sampling.topK=20: truncated sampling with engine=vllm and the "
        "sequence_mask correction ruins the loss. Set topP to 1 and topK to 0, or "
        "trainer.grpo.vllm_importance_sampling_correction to false.",
    ),
    (
        {
            "trainer": {
                "engine": "vllm",
                "vllm": SERVER,
                "sampling": {"topP": 1.0, "topK": 0, "logitBias": {"e": 0.5}},
            }
        },
        "spec.trainer.sampling.logitBias.e=0.5: a bias with engine=vllm and the sequence_mask "
        "correction ruins the loss. Leave logitBias out, or set "
        "trainer.grpo.vllm_importance_sampling_correction to false.",
    ),
    (
        {"judge": {"backend": "none"}, "recipe": {"weights": {"gate": 0.7, "judge": 0.3}}},
        "spec.judge.backend=none: recipe.weights.judge=0.3 needs a judge. "
        "Set backend to embedded or openai, or the weight to 0.",
    ),
    (
        {"scorer": {"backend": "none"}, "recipe": {"weights": {"gate": 0.4, "quality": 0.6}}},
        "spec.scorer.backend=none: recipe.weights.quality=0.6 needs a scorer. "
        "Set backend to embedded or hpsv3, or the weight to 0.",
    ),
    (
        {"scorer": {"backend": "none"}, "recipe": {"weights": {"mark_depth": 1}}},
        "spec.scorer.backend=none: recipe.weights.mark_depth=1 needs a scorer. "
        "Set backend to embedded or hpsv3, or the weight to 0.",
    ),
    (
        {
            "judge": {"backend": "none"},
            "recipe": {"schedule": {"stages": [{"step": 3, "weights": {"utility": 1}}]}},
        },
        "spec.judge.backend=none: recipe.schedule.stages[0].weights.utility=1 needs a judge. "
        "Set backend to embedded or openai, or the weight to 0.",
    ),
    (
        {"recipe": {"kl": {}}, "trainer": {"beta": 0.1}},
        "spec.trainer.beta=0.1: recipe.kl sets the same weight. "
        "Keep one of trainer.beta and recipe.kl.",
    ),
    (
        {"trainer": {"sampling": {"logitBias": {"a": 101}}}},
        "spec.trainer.sampling.logitBias.a=101: above 100. Set it to 100 or less.",
    ),
    (
        {"judge": {"backend": "openai"}},
        "spec.judge.endpoint: backend=openai needs an endpoint. Name the base URL of an "
        "OpenAI-compatible API, such as http://127.0.0.1:8000/v1.",
    ),
    (
        {"scorer": {"backend": "vlm-mark"}},
        "spec.scorer.endpoint: backend=vlm-mark needs a vision-language model. "
        "Name its base URL, or set judge.backend to openai.",
    ),
    (
        {"scorer": {"checkpoint": {}}},
        "spec.scorer.checkpoint: needs exactly one of claim and id. "
        "Name the claim that holds the weights, or the hub model.",
    ),
    (
        {
            "judge": {
                "backend": "openai",
                "endpoint": "http://judge/v1",
                "deploy": {"image": "vllm:1", "model": "a/b"},
            }
        },
        "spec.judge.deploy=a/b: judge.endpoint is given too. Keep one of endpoint and deploy.",
    ),
    (
        {"judge": {"secretRef": {}}},
        "spec.judge.secretRef.name: missing. Add name: The Secret's name.",
    ),
    (
        {"renderers": {"scaling": {"min": 9}}},
        "spec.renderers.scaling.min=9: above max=8. Set min to 8 or less, or raise max.",
    ),
    (
        {"renderers": {"replicas": 3}},
        "spec.renderers.replicas=3: scaling.mode is Queue. "
        "Leave replicas out, or set renderers.scaling.mode to External.",
    ),
    (
        {"renderers": {"canvas": {"minSide": 512, "maxSide": 256}}},
        "spec.renderers.canvas.minSide=512: above maxSide=256. "
        "Set minSide to 256 or less, or raise maxSide.",
    ),
    (
        {"references": {"pool": "./mine", "claim": "paintings"}},
        "spec.references.claim=paintings: references.pool is given too. "
        "Keep one of pool, dataset, claim and configMap.",
    ),
    (
        {"prompts": {"subjects": ["an iris"], "dataset": {"id": "a/b"}}},
        "spec.prompts.dataset=a/b: subjects are given too. "
        "Leave one of prompts.subjects and prompts.dataset out.",
    ),
    (
        {"prompts": {"thinking": True}},
        "spec.trainer.sampling.maxCompletionTokens=512: leaves no room for a sketch after "
        "prompts.thinking=true. Set it to 1024 or more, or set prompts.thinking to false.",
    ),
    (
        {"model": {"id": "models/my/policy"}},
        "spec.model.id=models/my/policy: neither a folder nor owner/name on the hub. "
        "Write ./models/my/policy for a folder.",
    ),
    (
        {"model": {"id": "./policy", "revision": "main"}},
        "spec.model.revision=main: model.id is a folder. Leave revision out.",
    ),
    (
        {"trainer": {"processes": 3}},
        "spec.trainer.rolloutsPerStep=16: not a multiple of replicas=1 times processes=3. "
        "Let each process have the same number of rollouts.",
    ),
    (
        {"trainer": {"engine": "vllm", "sampling": {"topP": 1.0, "topK": 0}}},
        "spec.trainer.vllm: engine=vllm needs a server. "
        "Name its base URL in trainer.vllm.endpoint.",
    ),
    (
        {"trainer": {"vllm": SERVER}},
        "spec.trainer.vllm.endpoint=http://v:8000: engine is auto, which asks no server. "
        "Set engine to vllm, or leave trainer.vllm out.",
    ),
    (
        {"trainer": {"engine": "static", "lora": {"targets": ["all-linear", "experts"]}}},
        "spec.trainer.engine=static: lora.targets names experts, which this engine shares with the "
        "training unmerged. Set it to auto or transformers, or leave experts out.",
    ),
    (
        {"trainer": {"lora": {"targets": ["experts"], "dropout": 0.5}}},
        "spec.trainer.lora.dropout=0.5: lora.targets names experts, whose adapter has no dropout. "
        "Set dropout to 0.",
    ),
    (
        {"trainer": {"processes": 2, "fsdp": True}},
        "spec.trainer.engine=auto: fsdp leaves no process the whole base model, from which it "
        "would generate. Set engine to vllm and name its server in trainer.vllm, or set fsdp to "
        "false.",
    ),
    (
        {"trainer": {**PARTED, "processes": 1}},
        "spec.trainer.fsdp=true: a single process has nobody to part the base model with. "
        "Set processes to 2 or more, or fsdp to false.",
    ),
    (
        {"trainer": {**PARTED, "lora": {"targets": ["experts"]}}},
        "spec.trainer.fsdp=true: lora.targets names experts, whose adapter is added to whole "
        "tensors. Leave experts out, or set fsdp to false.",
    ),
    (
        {"trainer": PARTED, "sft": {"corpus": "builtin:grammar"}},
        "spec.trainer.fsdp=true: the cold start of spec.sft generates by the whole base model. "
        "Leave sft out and name an adapter in spec.model.adapter, or set fsdp to false.",
    ),
    (
        {"trainer": {"grpo": {"num_generations": 4}}},
        "spec.trainer.grpo.num_generations=4: set by spec.trainer.groupSize. "
        "Set spec.trainer.groupSize instead.",
    ),
    (
        {"scorer": {"resources": {"requests": {"memory": "4Gi"}, "limits": {"memory": "4G"}}}},
        "spec.scorer.resources.requests.memory=4Gi: above its limit 4G. Set it to 4G or less.",
    ),
    (
        {"egress": {"env": ["10.0.0.1"]}},
        "spec.egress.env=10.0.0.1: not a CIDR. Write 203.0.113.0/24, or all.",
    ),
    (
        {"podTemplates": {"renderers": {"spec": {"hostNetwork": True, "tolerations": []}}}},
        "spec.podTemplates.renderers.spec.hostNetwork=true: renderers run hostile code, so this "
        "cannot change. Keep to affinity, imagePullSecrets, nodeSelector, priorityClassName, "
        "schedulerName, tolerations, topologySpreadConstraints.",
    ),
]

#: Refused by the models; the API server cannot look so deep and leaves it to the operator, which
#: reports InvalidSpec.
BEYOND_CEL: list[Any] = [
    {
        "podTemplates": {
            "env": {
                "spec": {"containers": [{"name": "env", "securityContext": {"privileged": True}}]}
            }
        }
    },
    {"podTemplates": {"env": {"spec": {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}}}},
    {"podTemplates": {"trainer": {"spec": {"affinity": {"$patch": "delete"}}}}},
]

#: Accepted by every reader.
SOUND: list[Any] = [
    {"trainer": PARTED},
    {"trainer": {"engine": "vllm", "vllm": SERVER, "sampling": {"topP": 1.0, "topK": 0}}},
    {
        "trainer": {
            "engine": "vllm",
            "vllm": SERVER,
            "sampling": {"logitBias": {"e": 0.5}},
            "grpo": {"vllm_importance_sampling_correction": False},
        }
    },
    {
        "trainer": {
            "engine": "vllm",
            "vllm": SERVER,
            "grpo": {"vllm_importance_sampling_mode": "token_mask"},
        }
    },
    {"judge": {"backend": "none"}, "recipe": {"weights": {"quality": 1, "judge": 0.0}}},
    {"recipe": {"name": "mine", "weights": {"a_term_of_a_package": 1}, "signed": True}},
    {"recipe": {"schedule": {"stages": [STAGE, STAGE | {"step": 9}], "between": "linear"}}},
    {"recipe": {"curriculum": [TIERS, TIERS | {"step": 9}], "kl": {}, "failedGate": -1}},
    {"recipe": {"curriculum": [], "paints": False}},
    {"trainer": {"sampling": {"logitBias": {"import": -100, "e": 0.5}}}},
    {"judge": {"backend": "none"}},
    {"env": {"sessions": 16}, "trainer": {"guards": {"probes": 0}}},
    {"renderers": {"replicas": 3, "scaling": {"mode": "External"}}},
    {"trainer": {"grpo": {"a_field_of_tomorrow": 1}}},
    {"egress": {"env": ["10.0.0.0/8", "fd00::/8"], "trainer": ["all"]}},
    {"recipe": {"name": "hybrid"}},
    {"model": {"id": "owner/name", "revision": "main"}},
    {"model": {"id": "./policy"}},
    {"scorer": {"backend": "none"}, "recipe": {"weights": {"gate": 0.1, "judge": 0.9}}},
    {"judge": {"backend": "openai", "endpoint": "https://judge.example/v1"}},
    {"judge": {"backend": "openai", "deploy": {"image": "vllm:1", "model": "a/b"}}},
    {"env": {"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "1024Mi"}}}},
    {"renderers": {"scaling": {"min": 8}, "canvas": {"minSide": 1024}}},
    {"model": {"id": "/models/a/b/policy/"}},
    {
        "prompts": {"thinking": True},
        "trainer": {"sampling": {"maxCompletionTokens": 1024}},
    },
]
