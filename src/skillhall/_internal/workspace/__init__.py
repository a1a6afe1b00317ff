"""The desk: the verbs on sessions, blocks, zones, templates and snapshots."""
