"""Tasks as files: adding, claiming, moving and finding them."""
