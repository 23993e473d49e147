"""Training of a chosen federation, and comparison of choices, in simulation.

Everything here reads the rows of all clients: it evaluates methods and is not private. Extra ``train`` (torch); `data`,
`splitting`, `fairness` and `choices` do without.
"""
