//! What an injected Pod needs, made ahead of it: one folder per concern, plans pure, writes fenced.
