"""To and from the learning management system: downloads in, grades and feedback out."""
