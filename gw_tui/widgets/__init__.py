"""What the screens are made of; nothing here knows where its data comes from."""
