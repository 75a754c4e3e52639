"""Class names in, a finetuned CLIP classifier out."""
