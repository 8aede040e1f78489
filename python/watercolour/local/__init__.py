"""Run a specification on this machine: processes, supervision, progress, diagnosis."""
