"""A crew: several workers under one supervisor, as a file names them."""
