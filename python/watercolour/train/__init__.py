"""The trainer: tiny policy, cold start, generation, GRPO, guards, checkpoints, artifacts."""
