"""The intake: where bundles come from. Everything outside our own process is met here first."""
