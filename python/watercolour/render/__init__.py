"""Sketch in, painting out: the vendored libraries, the realm, the browser, the service."""
