"""A tokenizer for one small dialect, in which what never changes is one token.

Tokens are time: a policy that spells every helper function out paints far fewer sketches a
minute. So whole helper functions and fixed lines are tokens, a number or a colour is one token
with the comma after it, and the text between two numbers is one token where it is frequent.
Everything else falls back to byte-level BPE, so any text can be read and written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"

#: Colours and numbers are atoms, with the comma that follows; text runs over one line break.
PIECE = (
    r'"#[0-9a-fA-F]{6}"(?:, )?'
    r"|-?\d+(?:\.\d+)?(?:, )?"
    r"|[^\d#\n\"]*\n[^\d#\n\"]*"
    r"|[^\d#\n\"]+"
    r'|["#]'
)
#: A declaration at the outer level, to its closing line.
BLOCK = re.compile(r"^(?:async )?function [^\n]*\{\n(?:[ \n].*\n|\n)*?\}\n|^const .*\n", re.M)

#: A block or line is a token of its own in at least this share of the texts.
FIXED_SHARE = 0.02
#: A piece is a token of its own if it occurs at least so often.
PIECE_COUNT = 6
MERGES = 160
LARGEST = 1024

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def train(prompts: Sequence[str], sketches: Sequence[str], longest: int) -> PreTrainedTokenizerFast:
    """Make the tokenizer of a corpus.

    Args:
        prompts: what stands in the messages before a sketch.
        sketches: the corpus.
        longest: the model's positions, in tokens.
    """
    fixed = _fixed(sketches) + sorted({p for p in prompts if len(p) > 1})
    rest = _without(sketches, fixed)
    split = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECE), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    pieces = Counter(piece for text in rest for piece, _ in split.pre_tokenize_str(text))
    vocabulary, merges = _small_bpe(rest, split)
    room = LARGEST - len(vocabulary) - len(fixed)
    for piece, count in pieces.most_common(room):
        if count >= PIECE_COUNT and piece not in vocabulary:
            vocabulary[piece] = len(vocabulary)
    core = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=True))
    core.pre_tokenizer = split
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([PAD, START, END])
    core.add_tokens([AddedToken(text, normalized=False) for text in fixed])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=END,
        pad_token=PAD,
        padding_side="left",
        model_max_length=longest,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def _fixed(sketches: Sequence[str]) -> list[str]:
    """Blocks and lines that many sketches share, longest first."""
    least = max(2, round(FIXED_SHARE * len(sketches)))
    blocks: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for sketch in sketches:
        found = set(BLOCK.findall(sketch))
        blocks.update(found)
        # A line of a block is worth a token only where the block is not the token.
        lines.update(set(sketch.splitlines(keepends=True)) - _lines_of(found))
    shared = [text for text, count in blocks.items() if count >= least]
    shared += [
        text
        for text, count in lines.items()
        if count >= least and re.search(r"\d", text) and text.endswith("\n")
    ]
    return sorted(set(shared), key=lambda text: (-len(text), text))


def _lines_of(texts: Iterable[str]) -> set[str]:
    return {line for text in texts for line in text.splitlines(keepends=True)}


def _without(sketches: Sequence[str], fixed: Sequence[str]) -> list[str]:
    """What is left of the sketches between fixed texts."""
    cut = re.compile("|".join(re.escape(text) for text in fixed)) if fixed else None
    return [part for text in sketches for part in (cut.split(text) if cut else [text]) if part]


def _small_bpe(texts: Sequence[str], split: Any) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges for text that no piece covers: all bytes and the commonest pairs."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = split
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=3 + len(alphabet) + MERGES,
        special_tokens=[PAD, START, END],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    # The trained merges are only readable from the serialised form.
    state: dict[str, Any] = _state(tokenizer)
    merges = [(first, second) for first, second in state["model"]["merges"]]
    return dict(state["model"]["vocab"]), merges


def _state(tokenizer: Tokenizer) -> dict[str, Any]:
    import json

    return json.loads(tokenizer.to_str())
