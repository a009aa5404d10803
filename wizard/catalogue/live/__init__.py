"""The code behind the declarations: a module for each family, named as the family's declarations are.

    @probe("sink.empty")
    def sink_empty(world: World) -> Seen: ...

    @action("sink.truncate")
    def sink_truncate(world: World) -> Plan: ...

A declaration without code, or code without a declaration, fails a test. The declarations do not import this package:
a runbook is proved without the code that acts.
"""
