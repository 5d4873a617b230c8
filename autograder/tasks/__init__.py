"""Task definitions: the references, the probes and the misconceptions. Trusted side only."""
