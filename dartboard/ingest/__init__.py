"""Documents in: readers, cleaning, chunking."""
