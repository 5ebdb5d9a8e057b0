"""Query logs of a warehouse: rows to texts, texts to shapes, shapes parsed in processes or on Spark."""
