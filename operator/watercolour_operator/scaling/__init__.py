"""How many renderers there are: a pure policy, and where it learns the demand."""
