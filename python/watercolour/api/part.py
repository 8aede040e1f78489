"""What every part of the specification is made of: the base model and the kinds of values.

Numbers and booleans are strict, as they are to the API server: ``"3"`` is text and ``true`` is no
number. Patterns spell their characters out, because ``\\w`` and ``\\s`` mean less to the API server
than to Python. Field names are camelCase in YAML and JSON and snake_case in Python.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo


class Part(BaseModel):
    """A part of the specification: camelCase outside, unknown fields refused, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        defer_build=True,
        allow_inf_nan=False,
    )


def fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """A model's fields by the names that YAML has for them."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def submodel(annotation: Any) -> type[BaseModel] | None:
    """The model in an annotation such as ``Gate``, ``Gate | None`` or ``tuple[Gate, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := submodel(part))), None)


class Mark:
    """Says something about a field that its type does not."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


#: Only a cluster heeds the field; a run on one machine does as if it were not there.
CLUSTER = Mark("CLUSTER")
#: The field cannot change once the run has started.
FIXED = Mark("FIXED")

#: A Kubernetes name: RFC 1123, at most 63 characters.
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
#: A run's name, short enough that every object of the run has a name; a Service's has to begin
#: with a letter.
RUN_NAME = r"^[a-z]([-a-z0-9]{0,49}[a-z0-9])?$"
#: An HTTP address without credentials.
HTTP_URL = r"^https?://[!-.0-?A-~]+(/[!-~]*)?$"
#: A Redis or Valkey server, with or without a user, password and database.
CACHE_URL = r"^(redis|rediss|valkey|valkeys)://[!-~]+$"
#: A Kubernetes quantity, such as 500m, 2 or 16Gi.
QUANTITY = r"^[0-9]{1,18}(\.[0-9]{1,9})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"
#: Owner, name and commit or tag of a data set.
PINNED_DATASET = r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+@[A-Za-z0-9_./-]+$"
#: Owner and name of a repository on the hub.
REPOSITORY = r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$"
#: A container image.
IMAGE = r"^[A-Za-z0-9_.-]+(:[0-9]+)?(/[A-Za-z0-9_.-]+)*(:[A-Za-z0-9_.-]+)?(@sha256:[0-9a-f]{64})?$"
#: One line of text with something in it.
LINE = r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"
#: A name of a method or of a module.
WORD = r"^[A-Za-z0-9_.-]+$"

#: What is wrong with a text that one of the patterns does not fit, and what to do.
SHAPES = {
    RUN_NAME: (
        "not a run's name",
        "Use 1 to 51 small letters, digits and dashes, beginning with a letter and ending with a "
        "letter or digit.",
    ),
    DNS_LABEL: (
        "not a Kubernetes name",
        "Use 1 to 63 small letters, digits and dashes, with a letter or digit at both ends.",
    ),
    HTTP_URL: (
        "not an HTTP address",
        "Write it as http://HOST:PORT/PATH, without a user or password.",
    ),
    CACHE_URL: (
        "not the address of a Redis or Valkey server",
        "Write it as redis://HOST:6379/0, or rediss:// for TLS.",
    ),
    QUANTITY: ("not a Kubernetes quantity", "Write it as 500m, 2 or 16Gi."),
    REPOSITORY: ("not a repository on the hub", "Write it as owner/name."),
    WORD: ("not a name", "Use letters, digits, dots, dashes and underscores."),
    PINNED_DATASET: ("not a pinned data set", "Write it as owner/name@COMMIT."),
    IMAGE: ("not a container image", "Write it as registry/name:tag or name@sha256:DIGEST."),
    LINE: ("not one line of text", "Write at least one character, and no line break."),
}

#: Largest whole number: what 32 bits hold.
MOST = 2**31 - 1


def _plain_number(value: Any) -> Any:
    """``cpu: 2`` is a quantity, although YAML takes it for a number; 0.5 is not to Kubernetes."""
    whole = _whole(value)
    return str(whole) if isinstance(whole, int) and not isinstance(whole, bool) else value


def _whole(value: Any) -> Any:
    """``3.0`` and ``1e3`` are whole numbers, as they are to the API server."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


#: Stands last in an annotation: constraints that follow it would not reach the schemas.
WHOLE = BeforeValidator(_whole)
Positive = Annotated[int, Field(strict=True, ge=1, le=MOST), WHOLE]
Natural = Annotated[int, Field(strict=True, ge=0, le=MOST), WHOLE]
WholeSeconds = Positive
Fraction = Annotated[float, Field(strict=True, ge=0, le=1)]
Seconds = Annotated[float, Field(strict=True, gt=0)]
Above0 = Annotated[float, Field(strict=True, gt=0)]
Flag = Annotated[bool, Field(strict=True)]
Line = Annotated[str, Field(pattern=LINE, max_length=1000)]
Name = Annotated[str, Field(pattern=DNS_LABEL)]
Url = Annotated[str, Field(pattern=HTTP_URL, max_length=2000)]
CacheUrl = Annotated[str, Field(pattern=CACHE_URL, max_length=2000)]
Image = Annotated[str, Field(pattern=IMAGE, max_length=500)]
Quantity = Annotated[str, Field(pattern=QUANTITY), BeforeValidator(_plain_number)]
PinnedDataset = Annotated[str, Field(pattern=PINNED_DATASET, max_length=300)]
Word = Annotated[str, Field(pattern=WORD, max_length=100)]
Words = Annotated[tuple[Word, ...], Field(min_length=1, max_length=100)]
Quantities = Annotated[dict[str, Quantity], Field(max_length=12)]


class SecretRef(Part):
    """Where a secret value lies. The value itself never stands in the specification."""

    name: Name = Field(description="The Secret's name.")
    key: Line = Field(default="token", description="The key within that Secret.")


class Resources(Part):
    """Kubernetes requests and limits of one container; what is unset takes the operator's value."""

    requests: Quantities = Field(
        default_factory=dict,
        description="Least amounts, such as `cpu: 2`, `memory: 16Gi`, `nvidia.com/gpu: 1`.",
    )
    limits: Quantities = Field(
        default_factory=dict, description="Greatest amounts, in the same units."
    )
