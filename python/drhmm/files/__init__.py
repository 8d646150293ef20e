"""Models as files: safetensors with a description, written whole or not at all."""
