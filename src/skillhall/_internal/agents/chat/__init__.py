"""Chat; imports Pydantic AI only when used."""
