"""Gives an agent its skills: the block for the system prompt, and the text of one skill."""

from pathlib import Path

from skillhall import Skills

skills = Skills.load(Path(__file__).parent / "skills")
print(skills.listing())

for finding in skills.findings:
    print(finding)

print(skills.activate("csv-report"))
