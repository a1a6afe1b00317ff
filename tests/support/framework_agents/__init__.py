"""One module for each framework: how its users would ask an agent that has skills.

Each is imported by the test that needs it alone: together they take seconds.
"""

KEY = "test-key"
