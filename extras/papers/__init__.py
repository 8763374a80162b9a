"""Charts that papers print, drawn from one's own figures."""
