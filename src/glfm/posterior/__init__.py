"""What draws say of cells and rows: predictive distributions, new rows, answers."""
