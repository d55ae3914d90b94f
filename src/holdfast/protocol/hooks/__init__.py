"""What an agent's hooks show, and what they are answered."""
