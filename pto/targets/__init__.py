"""What each product supports, as data."""
