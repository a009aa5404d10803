"""How a job is started, stopped and asked whether it runs: one interface, one file for each kind of `control`."""
