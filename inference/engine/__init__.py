"""The engine of real models: one thread that owns a model and advances all its sequences together, on MLX."""
