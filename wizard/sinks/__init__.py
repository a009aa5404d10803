"""What a sink holds, one file for each kind, all behind `interface.Sink`."""
