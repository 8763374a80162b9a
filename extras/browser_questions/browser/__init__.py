"""Fetching of web pages whose content is created by JavaScript, with Chromium."""
