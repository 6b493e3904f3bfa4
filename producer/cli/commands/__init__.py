"""The commands, one file each; `producer.cli.main` names them and loads one when it is called."""
