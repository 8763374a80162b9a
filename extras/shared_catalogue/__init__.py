"""Care for a catalogue that is shared: its facts compared with the hub, and proposed entries."""
