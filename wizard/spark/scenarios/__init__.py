"""Ways to break a live stream, each one real: files are lost, cut or removed as they are in an outage, settings are
changed as a release changes them, and jobs are run to do the damage that only a job can do.

    scenario = SCENARIOS["state-file-lost"]
    scenario.inject(workspace, run)         # the jobs are stopped and have run before

The `killed-…` scenarios leave on the disk what a kill -9 at that very moment leaves; the kills themselves, at random
moments, are in the tests. `signature` is what Spark 4.2.0 raises at the next start of the job once more records have
come, recorded by running it; None where it raises nothing, which is the worse case. `truth` says what has become of
the rows by then.
"""

from wizard.spark.scenarios.catalogue import SCENARIOS
from wizard.spark.scenarios.model import Rows, Run, Scenario, Truth

__all__ = ["SCENARIOS", "Rows", "Run", "Scenario", "Truth"]
