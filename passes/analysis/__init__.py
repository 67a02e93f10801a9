"""Facts about modules that several passes and commands ask for: places, addresses, targets, tmp."""
