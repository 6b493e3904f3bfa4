"""What runs on this machine: worker processes, Flower, and the runs of `proctor demo`."""
