"""The OpenEnv environment: the corridor from a completion to its reward, and its client."""
