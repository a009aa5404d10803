"""A runbook as data: loaded strictly, checked as a graph, and proved safe over all its paths before anybody runs it."""
