"""A yard behind a gateway: the same port, one request for each verb. Policy stays with the gateway."""
