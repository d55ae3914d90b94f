"""Teams: one lasting agent conversation for each sender, receiver and thread, on real agent processes."""
