"""What the policy is asked, and what it would answer, as the tokens that it reads and writes."""

from __future__ import annotations

from watercolour.api.spec import RunSpec
from watercolour.sketch import prompt
from watercolour.train import pairs, thinking
from watercolour.train import policy as policies


def reply_tokens(
    spec: RunSpec, policy: policies.Policy, pair: pairs.Pair
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A prompt and the reply that holds the sketch, as the policy would write it."""
    plain = prompt.preset(spec.prompts.system, spec.model.id) == "tiny"
    text = pair.sketch.strip() if plain else f"```javascript\n{pair.sketch.strip()}\n```"
    reply: list[int] = policy.tokenizer(text, add_special_tokens=False)["input_ids"]
    return tokens_of(spec, policy, pair.subject), (*reply, policy.tokenizer.eos_token_id)


def tokens_of(spec: RunSpec, policy: policies.Policy, subject: str) -> tuple[int, ...]:
    """The prompt that asks for a subject, as tokens."""
    tokens: list[int] = policy.tokenizer.apply_chat_template(
        messages_of(spec, subject),
        add_generation_prompt=True,
        tokenize=True,
        return_dict=False,
        **{"enable_thinking": spec.prompts.thinking, **spec.model.chat_template_kwargs},
    )
    if not spec.prompts.thinking:
        thinking.require_shut(policy.tokenizer.decode(tokens))
    return tuple(tokens)


def messages_of(spec: RunSpec, subject: str) -> list[dict[str, str]]:
    """The chat that asks for a subject."""
    return prompt.messages(subject, prompt.preset(spec.prompts.system, spec.model.id))
