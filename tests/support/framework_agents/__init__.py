"""One module per framework: an agent with skills, as its users would write it.

Each is imported by the test that needs it alone: together they take seconds.
"""

KEY = "test-key"
