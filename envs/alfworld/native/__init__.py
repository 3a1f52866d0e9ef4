"""The native engine: textworld and alfworld themselves."""
