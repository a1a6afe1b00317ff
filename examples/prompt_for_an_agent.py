"""Gives an agent its skills: the block for the system prompt, and the text of one skill."""

from pathlib import Path

import skillhall

SKILLS = Path(__file__).parent / "skills"

catalog = skillhall.load_catalog([str(SKILLS)])
print(skillhall.render_listing(catalog.visible))

for judged in catalog.findings:
    print(f"{judged.effect}: {judged.finding.message}")

print(skillhall.activate(catalog.find("csv-report")))
