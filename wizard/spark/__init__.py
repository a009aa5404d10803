"""The only room that imports pyspark: the sensor pipeline, run in its own process."""
