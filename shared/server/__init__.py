"""Redis servers: their URLs, clients, requirements and rights, and the embedded one."""
