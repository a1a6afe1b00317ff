"""One module per framework: an agent with skills, as its users would write it.

Each module is imported only by the test that needs it: importing all of them takes seconds.
"""

KEY = "test-key"
