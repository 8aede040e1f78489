"""The rollout record as parquet: one file a step, every field but the painting's bytes.

The schema is derived from the record, so a field that the record gains is stored without a change
here. ``painting_file``, ``sketch_file`` and ``thumb_file`` say where the pictures lie, relative to
the run's folder.
"""

from __future__ import annotations

import io
import types
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout

#: The one field that lies in a file of its own.
BYTES = "painting"
FILES = ("painting_file", "sketch_file", "thumb_file")
_PLAIN = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def _type(annotation: Any) -> pa.DataType:
    """The arrow type of a field; every one may be null."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return pa.string()
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return pa.struct(_fields(annotation))
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (types.UnionType, Union):
        return _type(next(part for part in inner if part is not type(None)))
    if origin is tuple:
        return pa.list_(_type(inner[0]))
    if origin is dict:
        return pa.map_(_type(inner[0]), _type(inner[1]))
    raise TypeError(f"{annotation} has no place in a parquet file")


def _fields(model: type[BaseModel]) -> list[pa.Field]:
    return [
        pa.field(name, _type(field.annotation))
        for name, field in model.model_fields.items()
        if name != BYTES
    ]


SCHEMA = pa.schema([*_fields(Rollout), *(pa.field(name, pa.string()) for name in FILES)])


def encode(rollouts: Sequence[Rollout], files: Sequence[Mapping[str, str | None]]) -> bytes:
    """The bytes of one parquet file.

    Args:
        rollouts: the records.
        files: for each record the paths named in FILES.
    """
    rows = [
        {**rollout.model_dump(mode="json", exclude={BYTES}), **places}
        for rollout, places in zip(rollouts, files, strict=True)
    ]
    for line in rows:
        for name, value in line.items():
            if isinstance(value, dict):
                line[name] = list(value.items())
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of one file, fields as in the record, paintings as paths.

    Raises:
        InputError: the file is truncated or otherwise broken (ArtifactsDamaged).
    """
    try:
        table = pq.read_table(path)
        rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(
            Reason.ARTIFACTS_DAMAGED,
            f"{path}: cannot be read ({str(error).splitlines()[0]}).",
            remedy="Delete it: the run goes on, and its summary leaves that step out.",
            field="path",
            value=str(path),
        ) from error
    return rows


def rollout(line: Mapping[str, Any]) -> Rollout:
    """The record of a row, without its painting."""
    return Rollout.model_validate({name: v for name, v in line.items() if name not in FILES})
