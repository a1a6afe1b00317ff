"""What clients make of a skill: traits of a SKILL.md, and rules of clients about them."""
