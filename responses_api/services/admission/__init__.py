"""What a request is checked for, and the row that it becomes."""
