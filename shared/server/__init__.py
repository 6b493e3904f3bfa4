"""Redis and RabbitMQ servers: their URLs, clients, requirements and rights, and the embedded one."""
