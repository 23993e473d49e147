"""What a client does before anything leaves it: calibrate, add noise, charge the ledger."""
