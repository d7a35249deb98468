"""The only folder that speaks SQL."""
