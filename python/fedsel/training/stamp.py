"""What every table and figure of this package carries."""

STAMP = "non-private evaluation"

EXPLANATION = (
    f"{STAMP}: training, losses and metrics read the clients' rows, and no privacy budget was charged for them"
)
"""One line below a table. What leaves a client in training is a release too; here nothing leaves the simulation."""
