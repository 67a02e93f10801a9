"""The Lark grammar of PTO assembly and the one place that loads it."""
