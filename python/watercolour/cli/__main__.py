"""``python -m watercolour.cli``."""

from watercolour.cli import main

if __name__ == "__main__":
    main()
