"""The one place that talks to the API server.

=============  ==========================================================================
module         duty
=============  ==========================================================================
``api``        one connection: authentication, time-outs, rate, the guard before a write
``errors``     what the API server says no with, and what a person can do about it
``kinds``      the kinds of objects that a run has, and how much of each is read
``reduce``     raw objects → the small records of :mod:`watercolour_operator.observed`
``store``      those records in memory, by run
``watch``      list and watch one kind for ever
``write``      server-side apply, delete, status, events
=============  ==========================================================================

Only ``api`` imports the Kubernetes client.
"""
