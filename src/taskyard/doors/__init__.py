"""Ways in for people and programs: each speaks to the Yard, and none knows a store or another door."""
