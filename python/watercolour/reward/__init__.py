"""Terms, recipes, the reference pool and the pairwise judge: from measurements to a reward."""
