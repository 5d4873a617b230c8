"""The batch: one submission at a time from ingest to verdicts, one writer for the gradebook."""
