"""The trainer: tiny policy, cold start, generation, GRPO, guards, checkpoints, artifacts."""

import os

# OpenMP reads it once, when torch is loaded, so it must stand before any module of this room.
# Threads that spin at a barrier take the cores from the renderers, and where cores are scarce
# they wait for one another a hundred times longer than they compute (bench/decode_loop.py).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
