"""`make test-containers`: the image and the compose files for real, with podman; see `__main__`."""
