"""The read-only web page of `pii-tracer serve`: routes over the views of `app/state_views`, behind one guard."""
