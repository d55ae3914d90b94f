"""What agents said and did before: imported from their transcripts on request, found by its words."""
