"""Pure builders: a run's specification and the plan in, manifests out; one module an object."""
