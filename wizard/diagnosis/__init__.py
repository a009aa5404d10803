"""What the evidence means: findings, what Spark will do at the next start, and the verdict on the four paths."""
