"""Model files: safetensors with a description, written atomically."""
