"""Pictures of a fit: matplotlib figures with the numbers they were drawn from."""
