"""The attacks, by what they go for."""
