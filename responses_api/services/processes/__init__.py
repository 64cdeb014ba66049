"""What every process does beside its work: announce itself, publish its counts, sweep in turn."""
