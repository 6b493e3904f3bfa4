"""The options of commands: what each group is called, and the values it stands for."""
