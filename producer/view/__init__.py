"""`proctor view`: runs in a browser, served on loopback: pages, live updates and actions."""
