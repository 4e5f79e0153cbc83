"""The parts of the load benchmark: corpus, client, servers, phases."""
