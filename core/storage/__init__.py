"""Files under the data root: the store, object stores, and claims."""
