"""The ``static`` engine for Qwen3 and Qwen3.5: one decode step as one CUDA graph.

A step reads every weight that it needs exactly once, from fused projections, and writes state in
place. On a GPU the step, sampling included, is captured once per batch size and replayed; on the
CPU the same step runs eagerly. ``weights`` holds a merged generation copy of the dense layers, the
experts stay the model's own; ``state`` the caches; ``torch_ops`` and ``triton_ops`` the same few
operations twice; ``step`` the forward; ``loop`` rows, retiring and capture.
"""
