"""The jobs runbook knows: the registry, the graph they form, and how each is started and stopped."""
