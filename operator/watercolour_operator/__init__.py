"""The operator: watches ``WatercolourRun`` and makes the cluster what the run asks for.

One level-triggered, idempotent way per run: observe → decide → desired → apply → status. The middle
is pure; only :mod:`~watercolour_operator.cluster` talks to the API server, and only
:mod:`~watercolour_operator.handlers` knows the event loop.
"""
