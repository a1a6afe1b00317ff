"""The shelf: the verbs on skills a person keeps. Plain functions; surfaces word their reports."""
