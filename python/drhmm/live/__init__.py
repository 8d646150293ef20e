"""Live sequences: streams, their snapshots, and alarms."""
